"""A sweep as a file says it: fields checked, each defect one line with the closest match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from audits.errors import BadInput, did_you_mean
from tune_spaces.dimensions import text_of
from tune_spaces.fields import number, refuse_unknown, several, truth, word, words
from tune_spaces.registry import Settings, Sweep, fixed
from tune_spaces.space import MOST_SETTINGS, Asha, Changes, Search, refuse_nested_paths
from tune_spaces.space_fields import space_of

FIELDS = (
    "title",
    "base",
    "space",
    "settings",
    "pooled",
    "samples",
    "search",
    "scheduler",
    "metric",
    "mode",
    "makes",
    "seeds",
    "seconds",
    "at_a_time",
    "search_seed",
)
OF_A_SPACE = ("samples", "search", "scheduler", "seconds", "at_a_time", "search_seed")
OF_TRIALS = {"seconds": "every setting is run to its end", "at_a_time": "--workers says how many run at once"}
"""Fields that only a search heeds whose trials are chosen one after the other, and what holds for all others."""
ALGORITHMS = ("grid", "random", "optuna")
SCHEDULERS = ("none", "asha")
MODES = ("min", "max")


def sweep_of(values: Mapping[str, Any], name: str, text: str = "") -> Sweep:
    """Return the sweep that the plain values of a file (``FIELDS``) describe; ``text``: the file.

    What plan fields can be is not checked here: that is settled with the plan in hand. Raises BadInput.
    """
    refuse_unknown(values, FIELDS, "a sweep")
    base, title, makes = (words(values, field) for field in ("base", "title", "makes"))
    if not base:
        raise BadInput("base is missing; name the plan that the sweep starts from, e.g. base: apollo-fashion14")
    if ("space" in values) == ("settings" in values):
        both = "space and settings are two ways to say what varies" if "space" in values else "nothing varies"
        raise BadInput(f"{both}; give either space (fields and values) or settings (name → fields)")
    search = search_of(values)
    varied = settings_of(values["settings"]) if "settings" in values else None
    if search.adaptive and values.get("pooled"):
        raise BadInput("pooled sums up settings that repeat one experiment; a search compares different ones")
    if varied and search.seeds and (own := [name for name, changes in varied.items() if "seed" in changes]):
        raise BadInput(f"seeds and settings.{own[0]} both set the plan's seed; leave out one of them")
    settings = {} if search.adaptive else at_seeds(varied if varied is not None else named(search), search.seeds)
    pooled = truth(values, "pooled")
    if pooled:
        require_repetitions(settings)
    return Sweep(
        name=name,
        title=title or name,
        base=base,
        varies=fixed(settings),
        metric=", ".join(search.metric),
        makes=makes,
        pooled=pooled,
        trade=trade_of(search),
        search=search,
        text=text,
    )


def trade_of(search: Search) -> tuple[str, str] | None:
    """Return the metric to lower and the one to raise, of a search that names one of each."""
    by_mode = dict(zip(search.mode, search.metric, strict=True))
    return (by_mode["min"], by_mode["max"]) if len(search.metric) == 2 and len(by_mode) == 2 else None


def as_drawn(sweep: Sweep) -> Sweep:
    """Return a search that is adaptive as a sweep of as many settings, drawn at random; any other sweep as it is.

    So its cost can be told beforehand, without what a scheduler will save.
    """
    if sweep.search is None or not sweep.search.adaptive:
        return sweep
    return replace(sweep, varies=fixed(at_seeds(named(sweep.search), sweep.search.seeds)))


def search_of(values: Mapping[str, Any]) -> Search:
    """Return how the space of a file is searched; raises BadInput for fields that do not go together."""
    if "settings" in values and (given := [field for field in OF_A_SPACE if field in values]):
        raise BadInput(f"{given[0]} is about a space; the settings of a list are run as they are")
    if values.get("space") == {} and not values.get("seeds"):
        raise BadInput("space is empty: nothing varies; write fields of the plan and what they are, one a line")
    samples = number(values, "samples", least=1, most=MOST_SETTINGS)
    algorithm = word(values, "search", ALGORITHMS) or ("grid" if samples is None else "random")
    scheduler, metric = scheduler_of(values.get("scheduler")), several(values, "metric")
    search = Search(
        space=space_of(values.get("space", {}), algorithm),
        algorithm=cast(Literal["grid", "random", "optuna"], algorithm),
        samples=cast("int | None", samples),
        scheduler=scheduler,
        metric=metric,
        mode=modes_of(values, metric),
        seeds=seeds_of(values.get("seeds", [])),
        seconds=number(values, "seconds", least=1, whole=False),
        at_a_time=cast("int | None", number(values, "at_a_time", least=1)),
        seed=cast(int, number(values, "search_seed", least=0) or 0),
    )
    check_together(values, search)
    return search


def check_together(values: Mapping[str, Any], search: Search) -> None:
    """Raise BadInput for fields that do not go together, and for those that a search lacks."""
    if search.algorithm == "grid":
        if search.samples is not None:
            raise BadInput(f"samples: {search.samples} are drawn by search: random or optuna; a grid is run as a whole")
        if "search_seed" in values:
            raise BadInput("search_seed is of search: random and optuna; nothing of a grid is drawn")
        search.space.grid()
    elif search.samples is None:
        raise BadInput(f"samples is missing; say how many settings search: {search.algorithm} draws, e.g. samples: 30")
    elif search.algorithm == "random" and search.adaptive:
        search.configurations()
    if search.adaptive and not search.metric:
        raise BadInput("metric is missing; name the number to search by, e.g. metric: gradient_ascent.apollo.auc")
    if len(set(search.metric)) < len(search.metric):
        raise BadInput(f"metric: {search.metric[0]} is given twice; a Pareto front needs two numbers")
    if search.scheduler and len(search.metric) > 1:
        raise BadInput("scheduler: asha stops trials by one metric; leave out the scheduler, or one metric")
    for field, why in OF_TRIALS.items():
        if field in values and not search.adaptive:
            raise BadInput(f"{field} is of search: optuna and scheduler: asha; of others {why}")
    if search.seeds and any(each.path == "seed" for each in search.space.dimensions):
        raise BadInput("seeds and space both set the plan's seed; leave out one of them")


def scheduler_of(given: Any) -> Asha | None:
    """Return the scheduler of a file: none, asha, or {asha: {grace, reduction}}."""
    name, settings = next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else (given, None)
    if name is None or (name == "none" and not settings):
        return None
    if name != "asha" or not isinstance(settings, Mapping | None):
        near = did_you_mean(name, SCHEDULERS) if isinstance(name, str) else ""
        raise BadInput(
            f"scheduler is {text_of(given)}{near}; allowed: none, asha, {{asha: {{grace: 1, reduction: 3}}}}"
        )
    settings = settings or {}
    refuse_unknown(settings, ("grace", "reduction"), "scheduler asha")
    grace, reduction = number(settings, "grace", least=1), number(settings, "reduction", least=2)
    return Asha(int(grace or 1), int(reduction or 3))


def modes_of(values: Mapping[str, Any], metric: Sequence[str]) -> tuple[Literal["min", "max"], ...]:
    """Return min or max for each metric; max where nothing is said."""
    given = several(values, "mode")
    for one in given:
        if one not in MODES:
            raise BadInput(f"mode is {one!r}{did_you_mean(one, MODES)}; allowed: min, max")
    if given and len(given) != len(metric):
        raise BadInput(f"mode: {len(given)} for {len(metric)} metrics; give one for each, in their order")
    return cast(tuple[Literal["min", "max"], ...], given or ("max",) * len(metric))


def seeds_of(given: Any) -> tuple[int, ...]:
    """Return the seeds of a file."""
    if not isinstance(given, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in given):
        raise BadInput(f"seeds is {text_of(given)}; give a list of whole numbers, e.g. seeds: [0, 1, 2]")
    if len(set(given)) < len(given):
        raise BadInput(f"seeds is {text_of(given)}; give each seed once")
    return tuple(given)


def settings_of(given: Any) -> dict[str, Changes]:
    """Return setting name → dotted fields of a list of settings."""
    if not isinstance(given, Mapping) or not given:
        raise BadInput("settings has no setting; write NAME: {field: value}, one a line")
    for name, changes in given.items():
        if not isinstance(changes, Mapping | None):
            raise BadInput(f"settings.{name} is {text_of(changes)}; write it as {{field: value}}, or {{}} for the plan")
        for path in changes or ():
            if not isinstance(path, str):
                raise BadInput(f"settings.{name}: {text_of(path)} is not the name of a field; write it as in a plan")
        refuse_nested_paths(list(changes or ()), f"settings.{name}")
    return {name: dict(changes or {}) for name, changes in given.items()}


def named(search: Search) -> dict[str, Changes]:
    """Return the settings of a search that is not adaptive by name; raises BadInput where two have the same name."""
    found: dict[str, Changes] = {}
    for changes in search.configurations():
        name = search.space.name(changes)
        if name in found:
            raise BadInput(f"two settings are both called {name!r}; name them in a list of settings")
        found[name] = changes
    return found


def at_seeds(settings: Mapping[str, Changes], seeds: Sequence[int]) -> Settings:
    """Return every setting at every seed, each a setting of its own; the settings themselves without seeds."""
    if not seeds:
        return settings
    return {f"{name}, seed={seed}": {**changes, "seed": seed} for name, changes in settings.items() for seed in seeds}


def require_repetitions(settings: Settings) -> None:
    """Raise BadInput unless the settings differ in their seeds only."""
    everywhere = dict.fromkeys(path for changes in settings.values() for path in changes)
    first = next(iter(settings.values()))
    for path in everywhere:
        if path != "seed" and any(path not in each or each[path] != first.get(path) for each in settings.values()):
            raise BadInput(f"pooled settings repeat one experiment and differ in seed only, but these differ in {path}")
