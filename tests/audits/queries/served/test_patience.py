"""Requests are made again with growing pauses up to a stated time, and no faster than the rates allow."""

from __future__ import annotations

import logging
from collections.abc import Callable
from email.utils import formatdate

import pytest

from audits.errors import BadInput, ServerSilent
from audits.queries.served.patience import LONGEST_PAUSE, Pace, Patience, Unanswered, retry_after


class Clock:
    """A clock that sleeps advance, and requests that take no time."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


def patience(**settings: float) -> tuple[Patience, Clock]:
    clock = Clock()
    return Patience("the server", Pace(**settings), clock, clock.sleep), clock  # type: ignore[arg-type]  # batch


def failing(times: int, wait: float | None = None) -> Callable[[], str]:
    left = iter(range(times))

    def request() -> str:
        if next(left, None) is None:
            return "answer"
        raise Unanswered("HTTP 503", wait)

    return request


def test_pauses_grow_up_to_a_bound_and_end_with_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    asked, clock = patience(patience=1000)
    assert asked.ask(failing(12), 1) == "answer"
    bounds = [min(0.2 * 2**attempt, LONGEST_PAUSE) for attempt in range(12)]
    assert all(bound / 2 <= slept <= bound for slept, bound in zip(clock.slept, bounds, strict=True))
    assert [record.getMessage().split(";")[0] for record in caplog.records] == ["the server does not answer (HTTP 503)"]


def test_the_server_is_given_up_at_the_stated_time() -> None:
    asked, clock = patience(patience=60)
    with pytest.raises(ServerSilent, match=r"^the server did not answer for 60 s: HTTP 503; what is recorded is kept"):
        asked.ask(failing(10**6), 1)
    assert clock.now == pytest.approx(160)


def test_the_wait_that_a_server_asks_for_is_kept_or_refused_at_once() -> None:
    asked, clock = patience(patience=60)
    assert asked.ask(failing(2, wait=20), 1) == "answer"
    assert clock.slept == [20, 20]
    with pytest.raises(ServerSilent, match="asks to wait 61 s more"):
        asked.ask(failing(1, wait=61), 1)
    assert clock.now == 140


def test_requests_and_queries_keep_to_their_rates() -> None:
    asked, clock = patience(requests_per_second=2, queries_per_second=10)
    begun = []
    for queries in (1, 20, 5, 1):
        asked.ask(lambda: begun.append(clock.now), queries)
    assert begun == pytest.approx([100, 100.5, 102.5, 103])
    clock.now += 50
    asked.ask(lambda: begun.append(clock.now), 1)
    assert begun[-1] == clock.now


def test_a_request_that_is_made_again_counts_for_the_rates() -> None:
    asked, clock = patience(requests_per_second=0.1)
    asked.ask(failing(2), 1)
    assert clock.now == pytest.approx(120)


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("7", 0) == 7
    assert retry_after(formatdate(1000, usegmt=True), 990) == 10
    assert retry_after(formatdate(1000, usegmt=True), 2000) == 0
    assert [retry_after(text, 0) for text in (None, "", "soon", "-3", "1e9")] == 5 * [None]


@pytest.mark.parametrize("settings", [{"batch": 0}, {"requests_per_second": 0}, {"queries_per_second": float("nan")}])
def test_a_pace_that_is_none_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(settings))} is"):
        Pace(**settings)  # type: ignore[arg-type]  # batch
