"""The table of audits, loaded on demand: which kind a plan is of, and what follows from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.credentials import mask, unusable_by
from audits.errors import BadInput, closest_first, did_you_mean
from audits.own.entry_points import Offer, offers, refusals
from audits.own.permission import Named, is_own, require_permission
from orchestrator.engine.data import data_of, on_this_machine
from orchestrator.engine.given_files import answers_in
from orchestrator.engine.kind import Design, Kind, load
from orchestrator.engine.own_code import code_of, follow_edits
from orchestrator.engine.plan import reach
from orchestrator.engine.plan.base import BasePlan, require_deciding
from orchestrator.engine.plan.errors import PlanProblems, shown
from orchestrator.engine.plan.files import read_plan, shipped_plans
from orchestrator.engine.plan.overrides import apply_overrides, parse_override
from orchestrator.engine.plan.reaches import changes_of, reaches
from orchestrator.engine.plan.wording import first_of
from orchestrator.engine.run.search_checks import check_search, require_searcher, require_trials_alone
from orchestrator.engine.run.target_parts import parts_of
from orchestrator.engine.store.store import default_store_uri
from tune_spaces.space import MOST_SETTINGS

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.store.store import Store
    from tune_spaces.registry import Sweep
    from tune_spaces.space import Space

KINDS = {
    "apollo": "orchestrator.apollo.kind:KIND",
    "tmia": "orchestrator.tmia.kind:KIND",
    "gnq": "orchestrator.gnq.kind:KIND",
    "mia": "orchestrator.mia.kind:KIND",
    "gnq-target": "orchestrator.gnq.given.kind:KIND",
}
"""Name (``audit.kind`` of a plan) → where its ``Kind`` stands."""
GROUP = "orch.kinds"
"""Entry points of installed packages that offer kinds of audits."""

OF_TARGETS = {"gnq": "gnq-target"}
"""``audit.kind`` of a plan with a section ``target`` → the kind of audit that it is of, where that is another one."""


def kind_named(name: str) -> Kind:
    """Return the kind of audits called ``name``; raises ``BadInput`` for others."""
    if name not in KINDS and name not in (known := kind_names()):
        raise BadInput(f"no audit {name!r}{did_you_mean(name, known)}; audits: {', '.join(known)}")
    if name in KINDS:
        found: Kind = load(KINDS[name])
        return found
    return installed_kind(next(offer for offer in offers(GROUP) if offer.name == name))


def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds of audits: those of the table, then those that installed packages offer."""
    found = offers(GROUP)
    refused = refusals(found, KINDS)
    return (*KINDS, *(offer.name for offer in found if offer.name not in refused))


def installed_kind(offer: Offer) -> Kind:
    """Return the kind that a package offers; raises BadInput for what is none."""
    kind = offer.load()
    if not isinstance(kind, Kind):
        raise BadInput(f"audit {offer.name} of package {offer.package} is no Kind (orchestrator.engine.kind)")
    return kind


def load_plan(
    source: str | None = None,
    overrides: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    kind: str | None = None,
    sweep: Sweep | None = None,
) -> BasePlan:
    """Return the plan of a file, of a shipped plan's name, or the embedded default (None).

    ``overrides`` are texts such as ``split.shadows=32`` (``--set``), ``values`` dotted paths with ready values; both
    are put in before the plan is checked. ``kind``: the audit that is asked for; a plan of another one is refused
    before anything else about it. ``sweep``: whoever is asked about what the plan runs and reaches is asked about its
    settings, too. Credentials in addresses are masked (``audits.credentials``). Raises ``BadInput``:
    ``PlanProblems`` when the YAML is readable but says something impossible, or when it was written by a finished run,
    which keeps no credentials.
    """
    changes = [*map(parse_override, overrides), *mask(dict(values or {})).items()]
    raw = apply_overrides(read_plan(source), changes)
    if unusable := [f"{path} is {shown(text)}: {why}" for path, text in texts_of(raw) if (why := unusable_by(text))]:
        raise PlanProblems(unusable)
    require_permission(list(code_of(raw)))  # before the modules of the kind are imported, which takes seconds
    plan = plan_from(raw, asked=kind)
    if sweep is not None:
        require_kind_of(sweep, plan)
        require_permission(list(code_of_settings(raw, sweep, plan)))
    own = [Path.cwd(), *([Path(source).parent] if source else [])]
    found = reach.leaving(reaches(plan, changes_of(sweep, plan) if sweep else ()), own)
    reach.require_permission([each for each in found if not is_beside_store(each, plan)])
    return plan


def is_beside_store(found: reach.Reach, plan: BasePlan) -> bool:
    """Say whether it is the record that a plan without a word on it has as well: that beside its store."""
    if found.field != "target.served.record":
        return False
    kept = answers_in(plan.compute.store or default_store_uri())
    return kept is not None and found.file == Path(kept).resolve()


def code_of_settings(raw: Mapping[str, Any], sweep: Sweep, plan: BasePlan) -> Iterator[Named]:
    """Yield the users' code that the settings of ``sweep`` name around ``plan``, whose plain values are ``raw``.

    Settings that cannot be made are left to the check of the plan that they would give.
    """
    search = sweep.search
    found = naming_code(search.space) if search and search.adaptive else sweep.settings(plan.resolved()).values()
    for changes in found:
        if about_code(changes):
            with suppress(BadInput):
                yield from code_of(apply_overrides(raw, changes.items()))


def naming_code(space: Space) -> Iterator[dict[str, Any]]:
    """Yield every combination of those fields of ``space`` that name code or its folder, each of them or none.

    Conditions between fields are left aside. Raises BadInput for more than anybody could be asked about.
    """
    about = [each for each in space.dimensions if each.listed and any(about_code({each.path: v}) for v in each.values)]
    if math.prod(len(each.values) + 1 for each in about) > MOST_SETTINGS:
        raise BadInput(f"space: {', '.join(each.path for each in about)}: code in more than {MOST_SETTINGS} settings")
    choices = [[{}, *({each.path: value} for value in each.values)] for each in about]
    for chosen in itertools.product(*choices):
        yield {path: value for one in chosen for path, value in one.items()}


def about_code(changes: Mapping[str, Any]) -> bool:
    """Return whether changes of dotted fields name users' code, or the folder of some."""
    return any(is_own(text) or path.endswith("root") for path, text in texts_of(changes))


def texts_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted path and the text of every text in nested mappings and lists."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from texts_of(item, f"{path}.{key}" if path else str(key))


def plan_from(raw: Mapping[str, Any], notes: tuple[str, ...] = (), asked: str | None = None) -> BasePlan:
    """Return the checked plan of a plain mapping, of the class that its ``audit.kind`` asks for (default: apollo).

    Raises BadInput where an audit of another kind is ``asked`` for.
    Modules of users' own that were edited are imported anew: here a run begins.
    """
    follow_edits()
    section = raw.get("audit")
    said = section.get("kind", "apollo") if isinstance(section, Mapping) else "apollo"
    name = OF_TARGETS.get(said, said) if "target" in raw and isinstance(said, str) else said
    if isinstance(name, str) and (name in KINDS or name in kind_names()):
        if asked not in (None, said, name):
            written = isinstance(section, Mapping) and "kind" in section
            raise BadInput(
                f"audit.kind is {said!r} in the plan, but the audit asked for is {asked!r}; "
                f"give it to orch audit {said}, or name a plan of {asked} (orch ls plans)"
                f"{'' if written else f'; without audit.kind a plan is one of {said}'}"
            )
        return kind_named(name).check(raw, notes)
    known = [each for each in kind_names() if each not in OF_TARGETS.values()]
    near = did_you_mean(name, known) if isinstance(name, str) else ""
    raise PlanProblems([f"audit.kind is {shown(name)}{near}; allowed: {', '.join(known)}"])


def check_against_data(plan: BasePlan, *, absent: bool = False) -> None:
    """Refuse a plan whose data set is not there, is too small for it, or does not fit the architecture.

    ``absent``: a set that is not there will do, if its size is known and the plan names no root. Raises ``BadInput``
    (also the catalogue's own, for a data set that is unknown or missing).
    """
    kind_named(plan.kind).fits(plan, absent)


def check_sweep(plan: BasePlan, sweep: Sweep, *, absent: bool = False) -> None:
    """Refuse settings of ``sweep`` that are no plans, do not fit their data or lack a metric; and idle fields.

    Of a search that is adaptive the corners of its space are looked at. ``absent`` as for ``check_against_data``.
    Raises BadInput, also for the plan of another kind of audit and for a searcher that is not installed.
    """
    require_kind_of(sweep, plan)
    search, settings = sweep.search, dict(sweep.settings(plan.resolved()))
    if search is not None:
        require_searcher(search)
        if search.adaptive:
            require_trials_alone(plan)
            settings = {search.space.name(changes): changes for changes in search.space.corners()}
    for path in dict.fromkeys(path for changes in settings.values() for path in changes):
        require_deciding(path)
    for name, changes in settings.items():
        try:
            changed = plan.changed(changes) if changes else plan
            if changes:
                check_against_data(changed, absent=absent)
            require_metrics(search.metric if search else (), changed)
        except BadInput as error:
            raise BadInput(f"setting {name}: {error}") from None
    if search is not None and search.scheduler is not None and not absent:
        design = open_design(plan, device="cpu")
        if not design.first_jobs():  # else its jobs are not known yet
            check_search(search, len(parts_of(kind_named(plan.kind), design.jobs())))


def require_kind_of(sweep: Sweep, plan: BasePlan) -> None:
    """Raise BadInput for the plan of another kind of audit than the sweep is of."""
    if sweep.base in shipped_plans() and plan.kind != (kind := load_plan(sweep.base).kind):
        raise BadInput(
            f"sweep {sweep.name} is of audits of kind {kind}, but the plan is of kind {plan.kind}; see orch ls sweeps"
        )


def require_metrics(metric: Sequence[str], plan: BasePlan) -> None:
    """Raise BadInput for a number that settings with this plan are not compared by."""
    known = kind_named(plan.kind).compared(plan) if metric else ()
    for name in metric:
        if known and name not in known:
            near = did_you_mean(name, known)
            closest = first_of(closest_first(name, known))
            raise BadInput(f"metric {name!r} is no number of this audit{near}; it has: {closest}")


def open_design(
    plan: BasePlan, store: Store | None = None, data: Dataset | None = None, device: str | None = None
) -> Design:
    """Return ``plan`` laid out on its data set or on ``data``, by its kind."""
    found = data or data_of(plan.data.name, plan.data.root, plan.data.groups)
    if device is None:
        plan, device = on_this_machine(plan)
    return kind_named(plan.kind).lay_out(plan, found, device, store)
