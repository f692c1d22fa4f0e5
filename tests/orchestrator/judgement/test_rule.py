"""What controls do to findings and to limits: one table, and that verdict and gate read it alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import Gate, judge_gates, judged_one, sources_of
from orchestrator.judgement.lines import Headline, Line
from orchestrator.judgement.rows import FAILED, HELD, LEAK, MISSING, NONE_SEEN, UNTOLD, Control, Finding, Source
from orchestrator.judgement.rule import as_controlled, clears, convicts, decisive, gathered

BELOW, ABOVE = Gate("auc=0.9", "auc", 0.9), Gate("auc=0.5", "auc", 0.5)
HEADLINE = Headline(
    example="auc=0.6",
    summary=("auc",),
    metrics=("auc",),
    parts=("attack",),
    names=lambda plan: {"attack": ["lira", "loss"]},
    lines=lambda document: [line(*place) for place in document["places"]],
)
SETTINGS, SUBJECTS, ATTACKS = ("I", "II"), ("scrub", "ascent"), ("lira", "loss")


def line(setting: str = "I", subject: str = "scrub", attack: str = "lira", auc: float = 0.6) -> Line:
    return Line((attack,), {"auc": auc}, attack, True, setting=setting, subject=subject, attack=attack)


def control(protects: str = "null results", state: str = FAILED, **more: object) -> Control:
    return Control.model_validate(
        {"name": "canaries", "protects": protects, "state": state, "setting": "I", "why": "So it came out.", **more}
    )


def finding(level: str, **more: object) -> Finding:
    seen = {"value": Estimate(0.6, 0.55, 0.65), "chance": 0.5, "seen_from": 0.55, "attack": "lira"}
    return Finding.model_validate(
        {"setting": "I", "subject": "SCRUB", "controlled_by": "scrub", "level": level, **seen, **more}
    )


def outcome(gate: Gate, controls: Sequence[Control], lines: Sequence[Line]) -> str:
    return judged_one(gate, HEADLINE, decisive(controls, sources_of(lines)), lines, []).outcome


@pytest.mark.parametrize(
    ("protects", "state", "leak", "null", "above", "below"),
    [
        ("findings", HELD, LEAK, NONE_SEEN, "failed", "passed"),
        ("findings", FAILED, UNTOLD, UNTOLD, "inconclusive", "inconclusive"),
        ("findings", MISSING, LEAK, UNTOLD, "failed", "inconclusive"),
        ("null results", HELD, LEAK, NONE_SEEN, "failed", "passed"),
        ("null results", FAILED, LEAK, UNTOLD, "failed", "inconclusive"),
        ("null results", MISSING, LEAK, UNTOLD, "failed", "inconclusive"),
        ("rates", HELD, LEAK, NONE_SEEN, "failed", "passed"),
        ("rates", FAILED, LEAK, UNTOLD, "failed", "inconclusive"),
        ("rates", MISSING, LEAK, NONE_SEEN, "failed", "passed"),
    ],
)
def test_what_rests_on_a_control(protects: str, state: str, leak: str, null: str, above: str, below: str) -> None:
    rows = [control(protects, state)]
    assert as_controlled(finding(LEAK), rows).level == leak
    assert as_controlled(finding(NONE_SEEN), rows).level == null
    assert (outcome(ABOVE, rows, [line()]), outcome(BELOW, rows, [line()])) == (above, below)


controls = st.lists(
    st.builds(
        Control,
        name=st.sampled_from(["retrain", "canaries"]),
        protects=st.sampled_from(["findings", "null results", "rates"]),
        state=st.sampled_from([HELD, FAILED, MISSING]),
        setting=st.sampled_from(SETTINGS),
        subject=st.sampled_from(["", *SUBJECTS]),
        attack=st.sampled_from([None, *ATTACKS]),
        lines=st.sampled_from(["all", "attack"]),
        why=st.just("So it came out."),
    ),
    max_size=6,
)
sources = st.builds(Source, st.sampled_from(SETTINGS), st.sampled_from(SUBJECTS), st.sampled_from(ATTACKS))


@given(controls, st.sampled_from(SETTINGS), st.sampled_from(SUBJECTS), st.sets(st.sampled_from(ATTACKS), min_size=1))
def test_verdict_and_gate_read_controls_alike(
    rows: list[Control], setting: str, subject: str, attacks: set[str]
) -> None:
    looked_at = [line(setting, subject, attack) for attack in sorted(attacks)]
    own = {"setting": setting, "controlled_by": subject, "attacks": tuple(sorted(attacks))}
    null, leak = (as_controlled(finding(level, **own), rows).level for level in (NONE_SEEN, LEAK))
    of_scope = decisive(rows, sources_of(looked_at))
    assert finding(LEAK, **own).sources == sources_of(looked_at)
    clear, convicting = all(map(clears, of_scope)), all(map(convicts, of_scope))
    assert (null == NONE_SEEN) == clear == (outcome(BELOW, rows, looked_at) == "passed")
    assert (leak == LEAK) == convicting == (outcome(ABOVE, rows, looked_at) == "failed")


@given(controls, st.sets(sources), st.sets(sources))
def test_who_looks_at_more_is_held_by_no_fewer_controls_of_all_lines(
    rows: list[Control], some: set[Source], more: set[Source]
) -> None:
    whole = decisive(rows, some | more)
    assert all(each in whole for each in decisive(rows, some) if each.lines == "all")
    assert whole == [each for each in rows if any(each is one for one in whole)]  # in their order


def test_of_the_rows_of_one_name_about_single_attacks_the_first_that_is_looked_at_decides() -> None:
    judge, other, none = (
        control(state=state, attack=attack, lines="attack")
        for attack, state in (("lira", FAILED), ("loss", HELD), ("walk", MISSING))
    )
    for attacks, state in (({"lira", "loss"}, FAILED), ({"loss"}, HELD), ({"loss", "walk"}, HELD), ({"walk"}, MISSING)):
        scope = {Source("I", "scrub", attack) for attack in attacks}
        assert [each.state for each in decisive([judge, other, none], scope)] == [state]
    scope = {Source("I", "scrub", attack) for attack in ("lira", "loss")}
    assert [each.state for each in decisive([other, judge], scope)] == [HELD], "the order is the kind's"
    elsewhere = control(name="own models", attack="loss", lines="attack")
    assert decisive([judge, elsewhere, other], scope) == [judge, elsewhere], "of another name the first, too"
    assert decisive([judge], {Source("II", "scrub", "lira")}) == []


def test_controls_of_a_name_are_one_line_with_the_worst_of_them() -> None:
    rows = [
        control(state=HELD, subject="lira", why="Nothing."),
        control(state=MISSING, subject="walk", why="Not known."),
        control(state=FAILED, subject="loss", why="Blind.", attack="loss", evidence=Estimate(0.4, 0.3, 0.5)),
        control(state=FAILED, subject="gap", why="Deaf."),
        control(name="retrain", protects="findings", state=HELD),
    ]
    first, second = gathered(rows)
    assert (first.name, first.state, first.why) == ("canaries", FAILED, "Blind (AUC .40 [.30, .50], loss). Deaf.")
    assert (second.name, second.state) == ("retrain", HELD)
    assert gathered(rows[:2])[0].state == MISSING


def test_a_limit_has_the_controls_of_its_own_lines_and_the_gate_the_worst_of_them() -> None:
    rows = [control(subject=name, state=state) for name, state in (("scrub", FAILED), ("ascent", HELD))]
    document = {
        "controls": [each.write() for each in rows],
        "places": [("I", "scrub", "lira"), ("I", "ascent", "loss")],
    }
    gates = [Gate(f"{attack}.auc=0.9", "auc", 0.9, (attack,)) for attack in ATTACKS]
    found = judge_gates(gates, HEADLINE, None, document)
    assert [limit.outcome for limit in found.limits] == ["inconclusive", "passed"]
    assert found.limits[0].reasons == ("control canaries: So it came out",)
    assert [(each.name, each.state) for each in found.controls] == [("canaries", FAILED)]
