"""Controls that several kinds share: of the attacks that a limit looks at, the first row decides as the rule says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.judgement.controls import ControlName, agreeing, by_attack, directions, fitted, promised, turned
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, Control, Source
from orchestrator.judgement.rule import decisive

CANARIES = ControlName("canaries", "planted points")
WHY = {HELD: "Seen.", FAILED: "Not seen.", MISSING: "Not known."}
ATTACKS = ("loss", "lira", "rmia", "walk")
areas = st.builds(
    lambda value, half: Estimate(value, value - half, value + half), st.floats(0.2, 0.8), st.floats(0.01, 0.2)
)
looked_at = st.sets(st.sampled_from(ATTACKS), min_size=1)


def deciding(rows: list[Control], attacks: set[str]) -> list[Control]:
    return decisive(rows, {Source("I", "", attack) for attack in attacks})


@given(st.dictionaries(st.sampled_from(ATTACKS), areas), looked_at)
def test_a_positive_control_is_the_judges_or_any_attacks_that_sees(by: dict[str, Estimate], asked: set[str]) -> None:
    [row] = deciding(by_attack(CANARIES, "I", by, ATTACKS, ("lira",), WHY), asked)
    known = [attack for attack in asked if attack in by]
    if not known:
        assert row.state == MISSING
        return
    judges = ["lira"] if "lira" in known else known
    assert row.state == (HELD if any(by[attack].above(0.5) for attack in judges) else FAILED)
    assert (row.attack in judges, row.evidence, row.why) == (True, by[str(row.attack)], WHY[row.state])


def test_a_kind_may_say_which_attacks_see_more_than_chance() -> None:
    by = {"loss": Estimate(0.9, 0.8, 1.0), "lira": Estimate(0.6, 0.55, 0.65)}
    rows = by_attack(CANARIES, "I", by, ("loss", "lira", "walk"), (), WHY, seen=["lira"])
    assert [(row.attack, row.state) for row in rows] == [("lira", HELD), ("loss", FAILED), ("walk", MISSING)]


@given(
    st.dictionaries(st.sampled_from(ATTACKS), st.tuples(areas, st.sampled_from([None, 0.001, 0.5])), min_size=1),
    looked_at,
)
def test_members_stand_out_the_other_way_round_by_all_attacks_or_by_those_looked_at(
    by: dict[str, tuple[Estimate, float | None]], asked: set[str]
) -> None:
    rows = [(attack, auc, p) for attack, (auc, p) in by.items()]
    found = deciding(directions("I", rows, 0.95, "Right.", "Wrong."), asked)

    def odd(own: list[tuple[str, Estimate, float | None]]) -> bool:
        return turned(((attack, auc.value, p) for attack, auc, p in own), 0.95) is not None

    own = [each for each in rows if each[0] in asked]
    told = [odd(rows), *([odd(own)] if own else [])]
    assert [row.state == FAILED for row in found] == told
    assert all((row.why == "Wrong.") == (row.state == FAILED) for row in found)


def test_no_attack_says_nothing_about_directions() -> None:
    assert directions("I", [], 0.95, "Right.", "Wrong.") == []


def test_members_of_a_given_model_agree_with_those_of_own_models_by_the_judge_and_by_each_attack() -> None:
    own = [("lira", 0.7, 0.65, 0.75), ("loss", 0.6, 0.55, 0.65), ("walk", 0.5, 0.4, 0.6)]
    of_given = [("lira", 0.69, 0.64, 0.74), ("loss", 0.5, 0.47, 0.53), ("walk", 0.8, 0.7, 0.9)]
    rows = agreeing("I", "lira", of_given, own)
    assert [(row.attack, row.lines, row.state, row.protects) for row in rows] == [
        (None, "all", HELD, FINDINGS),
        ("lira", "attack", HELD, FINDINGS),
        ("loss", "attack", FAILED, FINDINGS),
        ("walk", "attack", FAILED, FINDINGS),
    ]
    assert agreeing("I", "lira", of_given, []) == []


def test_promises_and_fits_fail_by_what_breaks_them() -> None:
    kept, broken = promised("I", []), promised("I", ["LiRA", "LiRA", "loss"])
    assert (kept.state, broken.state, broken.why.count("LiRA")) == (HELD, FAILED, 1)
    alike, unlike = fitted("I", []), fitted("I", ["own models fit better", "and worse"])
    assert (alike.state, unlike.state) == (HELD, FAILED)
    assert unlike.why.startswith("Own models fit better")
