"""Settings of a TMIA attack, chosen on pseudo-targets made of the attacker's points (``orch tune tmia``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from audits.errors import BadInput
from audits.tmia.attacks import ATTACKS
from audits.tmia.per_target import ALL, MEASURES, per_target
from audits.tmia.rehearsal import rehearsal_split
from audits.tmia.shared_pool import check_corrected_level, pool_sets_of
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Selection
from orchestrator.engine.run.scores import joined_scores
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.tmia.jobs import TmiaJobs
from orchestrator.tmia.plan import TmiaPlan, sizes

if TYPE_CHECKING:
    import pyarrow as pa

SELECTED = "selected"
"""The first selector of a setting but none: by it settings with different selectors can be compared."""
NONE = "none"


class Metric(NamedTuple):
    """What is chosen by: a measure of an attack on the candidates of a selection."""

    selection: str
    attack: str
    measure: str


def metrics(plan: TmiaPlan) -> Sequence[str]:
    """Return every selection × attack × measure; all candidates are judged by attacks that read more than labels."""
    return tuple(
        f"{selection}.{attack}.{measure}"
        for selection in (SELECTED, *plan.audit.selectors, ALL)
        for attack in plan.audit.attacks
        for measure in MEASURES
        if selection != ALL or ATTACKS[attack].access != "labels"
    )


def place(metric: str) -> Metric:
    """Return the parts of the name of a metric; the attack of a user may have points in its name."""
    selection, _, rest = metric.partition(".")
    attack, _, measure = rest.rpartition(".")
    return Metric(selection, attack, measure)


def selection_in(plan: TmiaPlan, metric: str) -> str:
    """Return the selection that a metric is about in a setting with this plan."""
    wanted = place(metric).selection
    if wanted != SELECTED:
        return wanted
    return next((name for name in plan.audit.selectors if name != NONE), NONE)


def refusal(plan: TmiaPlan, metric: str) -> str:
    """Return why nothing can be chosen by ``metric``, or ""."""
    if plan.target is not None:
        return "target is given, and one model tells no gain; tune on targets of the plan's own (leave target out)"
    attack = ATTACKS[place(metric).attack]
    return f"{attack.name} is told the truth and is not an attack" if attack.access == "oracle" else ""


def points_read(plan: TmiaPlan) -> int:
    """Return how many of the attacker's points selectors and attacks read beside the candidates."""
    return plan.audit.reference_samples + plan.audit.reconstruction.points


def unscored(plan: TmiaPlan, metric: str) -> str:
    """Return why a setting with this plan cannot be rehearsed, or ""."""
    wanted = selection_in(plan, metric)
    if wanted not in (ALL, *plan.audit.selectors):
        return f"{wanted} is not among its audit.selectors"
    try:
        split = rehearsal_split(sizes(plan), points_read(plan))
        if ATTACKS[place(metric).attack].ranked:
            pool = pool_sets_of(split.attacker_points, split.train_size, corrected=plan.audit.pool_correction)
            check_corrected_level(plan.audit.beta, split.reference_models, pool)
    except BadInput as error:
        text = str(error).replace("beta = ", "with so few points in a rehearsal audit.beta = ", 1)
        return text.replace("n_ref", "split.reference_models")
    return ""


def rehearsed(plan: TmiaPlan, metric: str) -> TmiaPlan:
    """Return the plan with the one attack that is rehearsed, in the plan's own mode."""
    return plan.changed({"audit.attacks": [place(metric).attack], "variants": {}})


def own(plan: TmiaPlan) -> TmiaPlan:
    """Return the plan without its variants: the attack is chosen for its own mode, and audited in that."""
    return plan.changed({"variants": {}}) if plan.variants else plan


def jobs(design: TmiaJobs, metric: str) -> Sequence[Job]:
    """Return the jobs of the rehearsal: all that its design has."""
    return design.jobs()


def values(setting: Setting, store: Store, metric: str) -> Mapping[int, float]:
    """Return pseudo-target → its value."""
    return on_targets(setting, joined_scores([setting], store), metric)


def on_targets(setting: Setting, scores: pa.Table, metric: str) -> Mapping[int, float]:
    """Return the value of each target, nothing for an attack that failed."""
    import pyarrow.compute as pc

    plan, attack = cast(TmiaPlan, setting.plan), place(metric).attack
    selectors = plan.audit.selectors
    own = scores.filter((pc.field("setting") == setting.name) & (pc.field("attack") == attack))
    if not len(own):
        return {}
    columns = {
        name: own[name].to_numpy()
        for name in own.column_names
        if not name.startswith("q_") or name.removeprefix("q_") in selectors
    }
    return per_target(
        columns, attack, selection_in(plan, metric), place(metric).measure,
        selectors=selectors, candidates=plan.split.candidates,
    )  # fmt: skip


def within(metric: str) -> tuple[float, float]:
    """Return the range of a metric's values."""
    return (-1.0, 1.0) if place(metric).measure == "advantage" else (0.0, 1.0)


SELECTION = Selection(
    metrics=metrics,
    refusal=refusal,
    unscored=unscored,
    fields=(
        "audit.selectors",
        "audit.alpha",
        "audit.neighbours",
        "audit.hop_skip_jump",
        "audit.reconstruction",
        "audit.noise",
        "audit.reference_samples",
        "audit.beta",
        "audit.asked",
        "split.reference_models",
    ),
    jobs=jobs,
    values=values,
    on_targets=on_targets,
    unit="pseudo-target",
    players="targets made of the attacker’s points",
    apart="a rehearsal has other candidates, and its reference models draw from a smaller pool",
    rehearsed=rehearsed,
    own=own,
    kind="orchestrator.tmia.rehearsal:REHEARSAL",
    within=within,
)
