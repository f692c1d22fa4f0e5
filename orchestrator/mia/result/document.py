"""The content of result.json of a membership run (schema ``orch.result/2``; see docs/reference/result.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from audits.statistics.null import expected_misses
from audits.statistics.summary import cells
from orchestrator.engine.plan.shadows import unlike_shadows
from orchestrator.engine.run.attempts import failed_attacks, failure_warnings
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.mia.result.areas import UNIT, Columns, canary_rows, judged_points, table
from orchestrator.mia.result.details import (
    details_of,
    discovered,
    epsilon_rows,
    exposed,
    fit_rows,
    known_of,
    shadow_rows,
)
from orchestrator.mia.result.given import (
    blind_rows,
    given_notes,
    given_warnings,
    kept_bounds,
    of_one_model,
    own_rows,
    unlike_fits,
)
from orchestrator.mia.result.judging import judge
from orchestrator.mia.result.rows import MiaResult
from orchestrator.report.best import BestRow, best_rows
from orchestrator.report.result import SettingRow, head_of, main_setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from audits.data.dataset import Dataset
    from orchestrator.engine.kind import Finished
    from orchestrator.engine.setting import Setting
    from orchestrator.mia.plan import MiaPlan


def summed_up(finished: Finished) -> dict[str, Any]:
    """Return the content of result.json: tables, controls, exposure, and everything needed to run again."""
    settings, store = finished.settings, finished.store
    plan: MiaPlan = finished.design.plan
    columns = {name: finished.scores[name].to_numpy(zero_copy_only=False) for name in finished.scores.column_names}
    level = plan.audit.level
    unlike = {setting.name for setting in settings if unlike_shadows(setting.plan)}
    details = {setting.name: details_of(setting, store) for setting in settings}
    rows = of_one_model(table(columns, plan, finished.design.data.groups, known_of(details)), columns, details, level)
    changes = [SettingRow(setting=setting.name, overrides=dict(setting.overrides)) for setting in settings]
    main = finished.main or main_setting(plan.resolved(), changes)
    shadows, epsilons, own_models, blind = [], [], [], []
    for setting in settings:
        own: MiaPlan = setting.plan  # type: ignore[assignment]  # plans of this kind are
        shadows += shadow_rows(setting.name, details[setting.name], own)
        epsilons += epsilon_rows(setting.name, details[setting.name], own)
        own_models += own_rows(setting.name, columns, details[setting.name], own)
        blind += blind_rows(setting.name, details[setting.name])
    shown = next(setting for setting in settings if setting.name == main)
    fits = [row for setting in settings for row in fit_rows(setting, store)]
    found = MiaResult(
        **head_of(finished),
        settings=tuple(changes),
        table=tuple(rows),
        canaries=tuple(canary_rows(columns, level)),
        shadows=tuple(shadows),
        epsilons=tuple(kept_bounds(epsilons, blind)),
        discoveries=tuple(discovered(columns, plan)),
        exposed=tuple(exposed(columns, shown, details[main])),
        fit=tuple(fits),
        own=tuple(own_models),
        blind=tuple(blind),
        best=() if finished.adaptive else best_of(columns, plan, finished.design.data.groups),
        judge=shown.plan.judge,  # type: ignore[attr-defined]  # plans of this kind have one
        level=level,
        expected_misses=expected_misses(len({row.attack for row in rows if row.setting == main}), level),
        warnings=warnings_of(finished, [*given_warnings(settings, blind, store), *unlike_fits(fits)]),
        notes=tuple(
            dict.fromkeys(
                [
                    *given_notes(shown, details[main]),
                    *plan.notes,
                    *(line for setting in settings for line in setting.plan.notes),
                ]
            )
        ),
    )
    found = judge(found, unlike)
    said = dict.fromkeys([*found.warnings, *control_warnings(found.controls)])
    return replace(found, warnings=tuple(said)).document()


def best_of(columns: Columns, plan: MiaPlan, groups: NDArray[np.int64] | None) -> tuple[BestRow, ...]:
    """Return the best setting of each attack, of a run of several settings."""
    found = cells(judged_points(columns))
    return best_rows(found, plan.audit, plan.seed, groups, unit=UNIT, unlearners=False)


def warnings_of(finished: Finished, further: Sequence[str]) -> tuple[str, ...]:
    """Return what weakens the result: the plan's own words, those of settings, attacks that failed, and more."""
    settings, plan = finished.settings, finished.design.plan
    lines = [*plan.warnings, *finished.design.warnings, *group_warnings(finished.design.data)]
    lines += [f"setting {each.name}: {line}" for each in settings for line in new_lines(each, plan.warnings)]
    lines += failure_warnings(failed_attacks(settings, finished.store), len(settings))
    return tuple(dict.fromkeys([*lines, *further]))


def new_lines(setting: Setting, said: Sequence[str]) -> list[str]:
    """Return the warnings of a setting's plan that the base plan has not ``said``."""
    return [line for line in setting.plan.warnings if line not in said]


def group_warnings(data: Dataset) -> list[str]:
    """Return the warning that no bound on ε is told where points come in groups."""
    if data.groups is None:
        return []
    return [
        "data.groups: no lower bound on ε is told, for the points of a group are in or out together, and guesses about "
        "them are no independent ones"
    ]
