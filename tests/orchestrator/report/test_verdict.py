"""The rule by which findings and controls become a verdict, and its words."""

from typing import Any

import pytest

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import (
    FAILED,
    FINDINGS,
    HELD,
    LEAK,
    MISSING,
    NONE_SEEN,
    NULLS,
    RATES,
    UNTOLD,
    Control,
    Finding,
    Protects,
    State,
    Verdict,
)
from orchestrator.judgement.rule import few_points, verdict_of
from orchestrator.judgement.wording import (
    FOUR_IN_FIVE,
    Wording,
    advice,
    capital,
    lines,
    meanings,
    named,
    rounded,
    unbroken,
    with_term,
)
from orchestrator.report.nouns import noun
from orchestrator.report.rows import read_row, write_row
from orchestrator.report.verdict_figure import left_out, shown, verdict_figure

WORDING = Wording("deleted images can still be recognised", advice("apollo", leak="Retrain.", untold="Ask more."))
ASCENT = Finding(setting="base", subject="Gradient ascent", level=LEAK, access="labels",
                 value=Estimate(0.612, 0.589, 0.634), chance=0.5)  # fmt: skip
TUNED = Finding(setting="base", subject="Fine-tuning", level=NONE_SEEN, chance=0.5, seen_from=0.551)
SCRUB = Finding(setting="base", subject="SCRUB", level=NONE_SEEN, chance=0.5, seen_from=0.5601)


def control(protects: Protects, state: State, setting: str = "base") -> Control:
    name = f"control of {protects}"
    return Control(name=name, protects=protects, state=state, setting=setting, why="So it came out.")


def judge(*findings: Finding, controls: tuple[Control, ...] = (), **more: Any) -> Verdict:
    told = {"main": {"base"}, "wording": WORDING, "tested": "", "access": (), "certainty": ""}
    return verdict_of(findings, controls, **{**told, **more})


def test_the_headline_names_leaks_and_what_a_null_result_would_have_seen() -> None:
    found = judge(ASCENT, TUNED, SCRUB, controls=(control(FINDINGS, HELD), control(NULLS, HELD)))
    assert found.level == LEAK and found.advice == "Retrain."
    assert found.headline == (
        "Deleted images can still be recognised: Gradient ascent (AUC .61 [.59, .63], from predicted classes alone). "
        "No leak seen: Fine-tuning, SCRUB; an AUC of .57 or more would have been seen."
    )  # the power of the weaker one, rounded up
    assert read_row(Verdict, write_row(found), "verdict") == found


def test_findings_of_several_settings_rest_on_the_controls_of_their_own() -> None:
    rows = [SCRUB.but(setting=name, subject=name) for name in ("a", "b", "c")]
    own = (control(NULLS, HELD, "a"), control(NULLS, FAILED, "b"), control(NULLS, MISSING, "c"))
    found = judge(*rows, controls=own, main={"a", "b", "c"})
    assert [each.level for each in found.findings] == [NONE_SEEN, UNTOLD, UNTOLD]
    assert found.level == UNTOLD
    assert [(each.state, each.why) for each in found.controls] == [(FAILED, "So it came out. Failed in b alone.")]
    assert judge(*rows, controls=own[1:], main={"b", "c"}).controls[0].state == FAILED
    assert judge(*rows, controls=(own[0], own[2]), main={"a", "c"}).controls[0].state == MISSING


def test_a_null_result_without_power_is_none() -> None:
    for seen, size in ((0.9, "with an AUC below .90"), (1.2, "of any size"), (None, "of any size")):
        blunt = Finding(setting="base", subject="SCRUB", level=NONE_SEEN, chance=0.5, seen_from=seen)
        found = judge(blunt)
        assert found.level == UNTOLD and f"could have missed a leak {size}" in found.headline
    assert judge(SCRUB).level == NONE_SEEN
    assert judge(SCRUB, blunt).level == UNTOLD and judge().level == UNTOLD


def test_what_cannot_be_told_for_one_reason_is_one_sentence() -> None:
    blunt = [
        Finding(setting="base", subject=name, level=NONE_SEEN, chance=0.5, seen_from=seen)
        for name, seen in (("SCRUB", 0.85), ("Fine-tuning", 0.9), ("SCRUB", 0.8))
    ]
    found = judge(*blunt).headline
    assert found.count("Cannot be told") == 1 and found.startswith("Cannot be told: SCRUB, Fine-tuning, because ")
    assert found.endswith("with an AUC below .90.")


def test_a_failed_control_is_what_the_advice_and_the_last_lines_are_about() -> None:
    found = judge(SCRUB, controls=(control(NULLS, FAILED),))
    assert found.advice.startswith("Do not rely on this run")
    assert lines(found) == [
        f"Verdict: {found.headline}",
        "Control failed: control of null results. So it came out.",
        f"What to do: {found.advice}",
    ]
    own = Wording(WORDING.leak, {**WORDING.advice, "control of null results": "Unlearn more gently."})
    assert judge(SCRUB, controls=(control(NULLS, FAILED),), wording=own).advice == "Unlearn more gently."
    assert judge(SCRUB, controls=(control(NULLS, FAILED), control(RATES, FAILED)), wording=own).advice == found.advice
    assert judge(TUNED, controls=(control(RATES, MISSING),)).advice.startswith("This audit gives no reason")


def test_a_trial_run_says_that_it_means_nothing_whatever_it_found() -> None:
    found = judge(ASCENT, too_small=few_points(60, "images"))
    assert found.level == UNTOLD and found.findings[0].level == LEAK
    assert found.headline.startswith("Trial run, too small to mean anything: its models were trained on 60 images each")
    assert few_points(101, "images") == few_points(None, "images") == ""


def test_settings_of_a_sweep_count_by_their_own_controls() -> None:
    others = (
        Finding(setting="b", subject="SCRUB", level=LEAK, value=Estimate(0.7, 0.6, 0.8)),
        Finding(setting="c", subject="SCRUB", level=LEAK),
    )
    found = judge(SCRUB, *others, controls=(control(FINDINGS, HELD), control(FINDINGS, FAILED, "c")))
    assert found.level == UNTOLD and found.headline == (
        "SCRUB: no leak seen in this setting, but one in b (AUC .70 [.60, .80]); the number of settings is not "
        "corrected for. A leak is seen in 1 of 3 settings."
    )
    assert [each.level for each in found.findings] == [NONE_SEEN, LEAK, UNTOLD]
    assert found.controls[0].state == HELD and found.controls[0].why.endswith("Failed in 1 other setting: c.")


def test_a_null_is_not_announced_beside_a_leak_elsewhere_and_other_nulls_are() -> None:
    other = SCRUB.but(subject="Finetune")
    others = (SCRUB.but(setting="b", level=LEAK, value=Estimate(0.7, 0.6, 0.8)), other.but(setting="b"))
    certainty = f"Of 8 targets. {FOUR_IN_FIVE}"
    found = judge(SCRUB, other, *others, controls=(control(FINDINGS, HELD),), certainty=certainty)
    assert (
        found.headline.startswith("No leak seen: Finetune; an AUC of")
        and "SCRUB: no leak seen in this setting" in found.headline
    )
    assert found.certainty == f"Of 8 targets. {FOUR_IN_FIVE}"
    leaks = judge(SCRUB.but(level=LEAK), certainty=f"Of 8 targets. {FOUR_IN_FIVE} Over-fitted.")
    assert leaks.certainty == "Of 8 targets. Over-fitted."


def test_what_an_attacker_sees_is_told_together_for_one_subject() -> None:
    def of(subject: str, level: str) -> list[Finding]:
        words = ("predicted classes alone", "confidences")
        value = Estimate(0.7, 0.6, 0.8)
        return [SCRUB.but(subject=f"{subject}, from {each}", level=level, value=value) for each in words]

    student = of("Student", LEAK)
    found = judge(*of("Teacher", LEAK), student[0], student[1].but(level=NONE_SEEN), *of("Other", NONE_SEEN))
    assert (
        "Teacher (from predicted classes alone: AUC .70 [.60, .80]; from confidences: AUC .70 [.60, .80]); "
        "Student, from predicted classes alone (AUC .70 [.60, .80])"
    ) in found.headline
    assert "No leak seen: Student, from confidences; Other; " in found.headline


def test_numbers_have_two_digits_and_power_is_never_rounded_down() -> None:
    assert [rounded(value) for value in (0.614, 1.0, -0.02, -0.001, None)] == [".61", "1.00", "−.02", ".00", "–"]
    assert [rounded(value, up=True) for value in (0.5601, 0.56, 0.57)] == [".57", ".56", ".57"]


def test_points_are_called_what_they_are() -> None:
    names = {"fashion14": "images", "digits?size=14": "images", "folder:/x": "images", "imdb:/x": "reviews"}
    names |= {"table:/x": "records", "python:a:b": "records", "toy2d": "records"}
    assert {name: noun({"data": {"name": name}}) for name in names} == names


def test_names_with_commas_are_told_apart_by_semicolons() -> None:
    assert named(["SCRUB", "Fine-tuning"]) == "SCRUB, Fine-tuning"
    assert named(["ε=1, β=2", "ε=1, β=4"]) == "ε=1, β=2; ε=1, β=4"
    assert named(list("abcdef")) == "a, b, c, d and 2 more"


def test_numbers_of_the_headline_are_explained_and_others_are_not() -> None:
    found = meanings(judge(ASCENT).headline)
    assert found.startswith("AUC: ") and ".50 is guessing" in found and "Precision" not in found
    of_members = ASCENT.but(metric="precision")
    assert meanings(judge(of_members).headline).startswith("Precision: ")
    assert meanings(judge(ASCENT, too_small="few").headline) == ""


def test_what_an_attacker_sees_is_told_with_the_word_that_tables_and_gates_use() -> None:
    assert [with_term(name) for name in ("labels", "posteriors", "white_box", "gradients", "own")] == [
        "predicted classes alone (labels)", "confidences (posteriors)", "weights (white box)", "gradients", "own"
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "most"), [("SCRUB", 14), ("a name that takes two lines of a figure " * 2, 11)])
@pytest.mark.parametrize("count", [1, 8, 12, 40])
def test_the_figure_stays_on_the_first_screen_and_says_what_it_leaves_out(words: str, most: int, count: int) -> None:
    rows = [ASCENT.but(subject=f"{words} {number}") for number in range(count)]
    verdict = judge(*rows)
    figure = verdict_figure(verdict)
    assert figure is not None and figure.get_figheight() <= 6.9
    drawn = len(shown(verdict.findings))
    assert drawn == min(count, most)
    assert left_out(verdict) == (f" The first {most} of {count} are drawn." if count > most else "")


def test_a_number_is_not_broken_from_its_name_or_its_interval() -> None:
    said = unbroken(judge(ASCENT, SCRUB).headline)
    assert said.split(" ") == unbroken(said).split(" ")
    assert "(AUC\u00a0.61\u00a0[.59,\u00a0.63]," in said and "an AUC of .57 or more" in said
    assert unbroken("TPR at 10 % is .2 (AUC .97)") == "TPR at 10\u00a0% is .2 (AUC\u00a0.97)"


def test_a_name_of_code_keeps_its_letters_at_the_start_of_a_line() -> None:
    assert [capital(text) for text in ("label_gap, AUC", "label gap, AUC", "lira", "")] == [
        "label_gap, AUC",
        "Label gap, AUC",
        "Lira",
        "",
    ]
