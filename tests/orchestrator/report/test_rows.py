"""Rows of a result: what is written is read again, and what does not fit is refused with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest

from audits.errors import BadInput
from orchestrator.judgement.estimate import Estimate, Span, keys
from orchestrator.judgement.rows import Control, Finding
from orchestrator.report.metrics import Logged, flat
from orchestrator.report.rows import SPARSE, read_row, without_points, write_row


@dataclass(frozen=True, kw_only=True)
class Inner:
    auc: Estimate = field(metadata=keys("auc", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class Row:
    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{name}.{metric}", ("rate", "rate_low", "inner.auc", "count")),)

    name: str
    count: int
    rate: Estimate
    exact: Span
    inner: Inner | None
    pairs: tuple[tuple[float | None, float | None], ...]
    more: Mapping[str, float]
    state: Literal["held", "failed"]
    later: bool = False
    added: str | None = field(default=None, metadata=SPARSE)


PLAIN: dict[str, Any] = {
    "name": "a",
    "count": 3,
    "rate": 0.5,
    "rate_low": None,
    "rate_high": 1,
    "exact_low": 0.1,
    "exact_high": 0.2,
    "inner": {"auc": 0.7, "low": 0.6, "high": None},
    "pairs": [[1.0, None], [None, 2]],
    "more": {"x": 1.5},
    "state": "held",
    "later": True,
}


def test_a_row_is_written_as_it_was_read() -> None:
    row = read_row(Row, PLAIN, "row")
    assert write_row(row) == PLAIN
    assert row.rate == Estimate(0.5, None, 1) and row.inner == Inner(auc=Estimate(0.7, 0.6, None))
    older = {name: value for name, value in PLAIN.items() if name != "later"}
    assert read_row(Row, older, "row").later is False
    assert without_points(Row, PLAIN) == PLAIN


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"count": 1.5}, r"table\[0\]\.count is 1\.5, not of type int"),
        ({"count": True}, r"count is True, not of type int"),
        ({"rate_low": "x"}, r"rate_low is 'x', not of type float"),
        ({"inner": {"auc": 0.7, "low": 0.6}}, r"table\[0\]\.inner lacks 'high'"),
        ({"pairs": [[1.0]]}, r"pairs\[0\] is not a list of 2"),
        ({"state": "holds"}, r"table\[0\]\.state is 'holds'; allowed: 'held', 'failed'"),
        ({"more": []}, r"more is list, not an object"),
        ({"unknown": 1}, r"table\[0\] has a field that this version does not know: 'unknown'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_row(Row, PLAIN | changes, "table[0]")


def test_rows_of_a_judgement_are_read_and_refused_like_all_others() -> None:
    control = Control(name="canaries", protects="null results", state="held", setting="base", why="Seen.",
                      evidence=Estimate(0.7, 0.6, 0.8))  # fmt: skip
    plain = write_row(control)
    assert plain == control.write() and plain["evidence_low"] == 0.6
    assert read_row(Control, plain, "controls[0]") == control == Control.of(plain)
    finding = Finding(setting="base", subject="SCRUB", level="leak", value=Estimate(0.7, 0.6, None), attacks=("a",))
    assert write_row(finding)["low"] == 0.6 and read_row(Finding, write_row(finding), "findings[0]") == finding
    for changes, said in (
        ({"state": "holds"}, r"controls\[0\]\.state is 'holds'; allowed: 'held', 'failed', 'missing'"),
        ({"of": "truth"}, r"controls\[0\] has a field that this version does not know: 'of'"),
        ({"evidence": "x"}, r"controls\[0\]\.evidence is 'x', not of type float"),
    ):
        with pytest.raises(BadInput, match=said):
            read_row(Control, plain | changes, "controls[0]")
    with pytest.raises(BadInput, match="lacks 'why'"):
        read_row(Control, {name: value for name, value in plain.items() if name != "why"}, "controls[0]")


def test_an_estimate_says_where_its_interval_lies() -> None:
    above, wide, alone = Estimate(0.7, 0.6, 0.8), Estimate(0.1, -0.2, 0.3), Estimate(0.7)
    assert above.above(0.5) and not above.above(0.6) and above.side == 1 and wide.side == alone.side == 0
    assert wide.holds(0.0) and not above.holds(0.5) and not alone.holds(0.7) and alone.known and not alone.bounded
    assert above.errors == pytest.approx((0.1, 0.1)) and alone.errors == (0.0, 0.0)
    assert float(Estimate()) != float(Estimate())


def test_metrics_are_named_by_fields_and_leave_out_what_is_not_defined() -> None:
    row = read_row(Row, PLAIN, "row")
    assert flat([row]) == {"a.rate": 0.5, "a.inner.auc": 0.7, "a.count": 3.0}
    other = read_row(Row, PLAIN | {"count": 4, "inner": None}, "row")
    assert flat([row, other])["a.count"] == 3.5
    assert flat([row], (Logged("{name}_at_{count:g}.{metric}", ("rate",)),)) == {"a_at_3.rate": 0.5}
