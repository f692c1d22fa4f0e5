"""What a page says more about one given model: its scope, the rate on its own non-members, the controls beside it."""

from __future__ import annotations

from audits.statistics.one_target import SAYS
from orchestrator.report.grid import Grid, grid, left
from orchestrator.report.numbers import VOID, estimate, number, percent
from orchestrator.report.sentence import Sentence
from orchestrator.tmia.page.glossary import words
from orchestrator.tmia.page.numbers import rate, rate_entry
from orchestrator.tmia.page.reading import TmiaRun
from orchestrator.tmia.result.given_rows import ControlCell, GivenCell, GivenResult


def named(run: TmiaRun, setting: str) -> str:
    """Return the setting's name for a heading, nothing where the run has only one."""
    return f" ({setting})" if len(run.settings) > 1 else ""


def scope(run: TmiaRun) -> list[Sentence]:
    """Say that intervals are about one model alone; nothing about a run with targets of its own."""
    return [Sentence("plain", "Scope", SAYS)] if isinstance(run.result, GivenResult) else []


def own_rate(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say whether the target's own known non-members are called members as rarely as the level promises."""
    rows = [row for row in run.rows(setting) if isinstance(row, GivenCell) and row.fpr_p is not None]
    if not rows:
        return []
    head = f"Control: the target’s non-members{named(run, setting)}"
    spoken = [row for row in rows if row.attack in run.judges and row.selection == run.main_selection]
    seen = "; ".join(f"{words(row.attack)} {rate(row.fpr)}" for row in spoken)
    read = f" Rate found under {words(run.main_selection)}: {seen}." if seen else ""
    off = [row for row in rows if row.fpr_off]
    level = f"β = {percent(rows[0].beta, 0)}"
    if not off:
        text = f"Known non-members of the target are called members no more often than {level} allows.{read}"
        return [Sentence("good", head, text)]
    names = ", ".join(f"{words(row.attack)} × {words(row.selection)}" for row in off[:6]) + ", …" * (len(off) > 6)
    text = (
        f"Known non-members of the target are called members more often than {level} in {len(off)} of {len(rows)} "
        f"cells after Holm’s correction: {names}.{read} Either the reference models are unlike the target, or it is "
        "more confident than most models of its kind. Precision and coverage are void there and must not be quoted."
    )
    return [Sentence("bad", head, text)]


def beside(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say what the same attacks find in models of the plan's recipe, and whether members are like non-members."""
    if not isinstance(run.result, GivenResult):
        return []
    return [*positive(run, setting), *alike(run.result, setting, named(run, setting))]


def positive(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say what the attacks of the verdict find in the controls, whose candidates are known."""
    head = f"Power: models trained by the plan{named(run, setting)}"
    parts = []
    for attack in run.judges:
        own = run.cell(setting, run.main_selection, attack)
        found = [row for row in controls(run, setting) if (row.selection, row.attack) == (run.main_selection, attack)]
        if own and found:
            parts.append(
                f"{words(attack)}: AUC {', '.join(estimate(row.auc) for row in found)} (the target "
                f"{estimate(own.auc)}), coverage {', '.join(number(row.coverage.value) for row in found)} (the target "
                f"{VOID.text if own.void else number(own.coverage.value)})."
            )
    if not parts:
        text = "Not in this run, so a null result may only mean that the attacks have no power."
        return [Sentence("bad", head, text)]
    text = (
        "Models trained by the plan on half of the same candidates, judged in the same way under "
        f"{words(run.main_selection)}. {' '.join(parts)} If these are at chance too, a null result means that the "
        "attacks are weak here, not that the target is safe."
    )
    return [Sentence("plain", head, text)]


def alike(result: GivenResult, setting: str, beyond: str) -> list[Sentence]:
    """Say whether models that saw neither tell the target's members from its non-members."""
    head = f"Members and non-members{beyond}"
    found = []
    for row in (row for row in result.alike if row.setting == setting):
        told = f"Reference models, which saw neither, tell the two apart with AUC {estimate(row.auc)} (99 %)"
        if row.differ:
            text = f"{told}. The two lists differ in themselves, and what attacks find may be this difference."
            found.append(Sentence("bad", head, text))
        else:
            found.append(Sentence("good", head, f"{told}. This interval contains ½: no difference is shown."))
    return found


def controls(run: TmiaRun, setting: str) -> list[ControlCell]:
    """Return the cells of the controls of a setting."""
    return [row for row in run.result.controls if row.setting == setting] if isinstance(run.result, GivenResult) else []


def control_grids(run: TmiaRun) -> list[Grid]:
    """Return what the attacks find in each control, a table a setting."""
    columns = [left("selection", merge=True), left("attack", merge=True), "control", "|Q|"]
    columns += [f"precision [{percent(run.level, 0)}]", "coverage", "FPR", "AUC"]
    found = []
    for setting in run.shown:
        body = [
            [
                words(row.selection),
                words(row.attack),
                row.control + 1,
                row.candidates,
                rate_entry(row.precision),
                rate_entry(row.coverage),
                rate_entry(row.fpr),
                rate_entry(row.auc),
            ]
            for row in controls(run, setting)
        ]
        if body:
            title = f"{setting}: models trained by the plan, judged like the target"
            found.append(grid(f"controls-{setting}", title, columns, body))
    return found
