"""Work that is begun ahead: in order, never more than was said, dropped when nobody wants it any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from audits.data import ahead as module
from audits.data.ahead import Begun, ahead, begun


@pytest.fixture(params=[1, 3])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """So many threads."""
    with ThreadPoolExecutor(request.param) as pool:
        monkeypatch.setattr(module, "threads", lambda: pool)
        yield request.param


def squares(number: int) -> Begun[list[int]]:
    """Begin to square ``number`` numbers."""
    found = [0] * number

    def square(place: int) -> None:
        found[place] = place * place

    return begun(square, range(number), lambda: found)


@pytest.mark.parametrize("depth", [0, 1, 2, 9])
def test_results_come_in_order_whatever_the_threads(workers: int, depth: int) -> None:
    sizes = [3, 0, 5, 1, 4]
    expected = [[place * place for place in range(size)] for size in sizes]
    assert list(ahead(squares, sizes, depth)) == expected


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_no_more_is_begun_than_was_said(depth: int) -> None:
    given: list[int] = []

    def begin(item: int) -> Begun[int]:
        given.append(item)
        return Begun((), lambda: item)

    results = ahead(begin, range(10), depth)
    assert given == [], "nothing before the first is asked for"
    for taken, item in enumerate(results, start=1):
        assert item == taken - 1
        assert len(given) == min(10, taken + depth)


def test_a_failure_is_raised_at_its_place_and_the_rest_is_dropped() -> None:
    tasks: dict[int, Future[None]] = {item: Future() for item in range(4)}
    tasks[0].set_result(None)
    tasks[1].set_exception(ValueError("the second"))
    results = ahead(lambda item: Begun([tasks[item]], lambda: item), range(4), 2)
    assert next(results) == 0
    with pytest.raises(ValueError, match="the second"):
        next(results)
    assert tasks[2].cancelled() and tasks[3].cancelled()


def test_who_stops_early_leaves_nothing_waiting() -> None:
    tasks: dict[int, Future[None]] = {item: Future() for item in range(5)}
    tasks[0].set_result(None)
    results = ahead(lambda item: Begun([tasks[item]], lambda: item), range(5), 2)
    assert next(results) == 0
    results.close()
    assert [tasks[item].cancelled() for item in range(5)] == [False, True, True, False, False]


def test_work_goes_on_while_the_caller_is_busy() -> None:
    reached = threading.Event()
    results = ahead(
        lambda item: begun(lambda last: reached.set() if last else None, [item == 1], lambda: item), [0, 1], 1
    )
    assert next(results) == 0
    assert reached.wait(600), "the second is worked on though only the first was asked for"
    results.close()
