"""Stage score: the attacks judge all candidates; the truth joins after they have spoken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.seeds import Purpose
from audits.tmia.answers import Answers, Labels, Posteriors, WhiteBox
from audits.tmia.attacks import ATTACKS, JUDGED, JudgeSettings
from audits.tmia.attacks.tmia import fitted_map, fitted_pairs
from audits.tmia.cells import apart as overfitted_apart
from audits.tmia.cells import cells, overfitted_rows, scores_rows
from audits.tmia.design import GROUPS, TRAINED
from audits.tmia.selectors import Scores, chosen
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.attempts import Attempts
from orchestrator.engine.run.scores import SCORES
from orchestrator.engine.store.payloads import pack_json, pack_table, unpack_arrays
from orchestrator.tmia.shared_pool import pool_sets
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.looking import LOOKS
from orchestrator.tmia.stages.one_target import apart, of_one_target
from orchestrator.tmia.stages.querying import ANSWERS, SELECTION
from orchestrator.tmia.stages.selecting import joined, random_sample, sampled, stars
from orchestrator.tmia.stages.stars import filled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.tmia.attacks import Ruling
    from audits.tmia.design import Group
    from orchestrator.tmia.design import TmiaDesign

CELLS = "cells.json"
SHOWN_AS: Mapping[Group, tuple[Group, ...]] = {
    "target": ("target",),
    "reference": ("reference",),
    "null": ("null", "overfitted"),
}
"""The groups of a design that stand behind each group which an attack is shown."""
GRID, SHOWN = 50, 400  # points of the fitted curve and of the pairs that a figure shows
EXPOSED = 24


def score(context: Context, job: Job) -> dict[str, bytes]:
    """Let every attack of the plan speak, and sum up what it said.

    An attack that raises (a map without enough pairs) is named in the artefact; the others are judged all the same.
    """
    import pyarrow as pa

    design = context.design
    audit, sets = design.plan.audit, design.sets
    found = answers(context, job)
    fitted = audit.reconstruction
    settings = JudgeSettings(audit.beta, fitted.map, fitted.degree, fitted.pairs, pool_sets(design.plan))

    def ruling(name: str) -> Ruling:
        said = ATTACKS[name]().judge(found, settings, context.seed(Purpose.JUDGE, name))
        return overfitted_apart(said, len(sets.null))

    attempts = Attempts()
    tried = {name: attempts.of(name, partial(ruling, name)) for name in audit.attacks}
    attempts.require_one(audit.attacks)
    rulings = {name: given for name, given in tried.items() if given is not None}
    selected, rows = selections(context, design)
    asked = np.zeros(len(sets.candidates), dtype=np.bool_)
    asked[found.known_labels().rows] = True
    classes, truth = design.data.labels[sets.candidates], sets.overfitted_membership
    columns = scores_rows(rulings, sets.membership, sets.candidates, classes, selected, asked, truth)
    for row in rows:
        row["asked"] = int((selected[row["selector"]] & asked).sum())
    details = {
        "cells": [],
        "selections": rows,
        "reconstruction": reconstruction(found.known_labels(), settings, list(rulings)),
        "exposed": exposed(design, rulings, selected),
        "overfitted": overfitted_rows(rulings, truth, audit.level),
        "warnings": [*design.warnings, *narrowed(rows)],
    }
    if design.plan.target is None:
        summed = cells(
            columns,
            selectors=audit.selectors,
            beta=audit.beta,
            pool_sets=pool_sets(design.plan),
            level=audit.level,
            draws=audit.bootstrap,
            seed=context.seed(Purpose.CELLS),
        )
        details["cells"] = [{"mode": audit.mode, **cell} for cell in summed]
    else:
        details |= of_one_target(context, found, settings, columns, rulings)
        columns = apart(columns)
    table = pa.table({"mode": [audit.mode] * len(columns["attack"]), **columns})
    return {SCORES: pack_table(table), CELLS: pack_json(details), **attempts.files()}


def answers(context: Context, job: Job) -> Answers:
    """Return all answers of the plan, units and shards joined."""
    design = context.design
    whole = by_group(design, job.document["posteriors"])
    return Answers(labels(context, job), posteriors(context, whole), design.sets.membership, looks(context))


def looks(context: Context) -> WhiteBox | None:
    """Return what the weights showed, or None where no attack of the plan looks into them."""
    design = context.design
    if not design.look_jobs:
        return None
    found: dict[str, list[dict[str, NDArray[Any]]]] = {group: [] for group in TRAINED}
    for job in design.look_jobs:
        found[job.label].append(unpack_arrays(context.store.get("look", job.key).read(LOOKS)))
    shadows = {name: np.concatenate([unit[name] for unit in found["reference"]]) for name in found["reference"][0]}

    def joined_of(name: str) -> dict[Group, NDArray[Any]]:
        empty = shadows[name][:0, :1].repeat(len(design.sets.candidates), axis=1)
        return {
            group: np.concatenate([empty, *(unit[name] for part in SHOWN_AS[group] for unit in found[part])])
            for group in JUDGED
        }

    member = sampled(design)[: len(shadows["features"]), : len(design.looked_at)]
    return WhiteBox(
        joined_of("features"), joined_of("displacement"), shadows["features"], shadows["displacement"], member
    )


def by_group(design: TmiaDesign, keys: Sequence[str]) -> dict[Group, list[str]]:
    """Return the keys of posteriors by group; they stand in the order of ``posterior_jobs``."""
    found: dict[Group, list[str]] = {}
    for asked, key in zip(design.posterior_jobs, keys, strict=True):
        found.setdefault(asked.label, []).append(key)  # type: ignore[arg-type]  # labels of these jobs are groups
    return found


def posteriors(context: Context, keys: Mapping[Group, Sequence[str]]) -> Posteriors:
    """Return the posteriors of all models, and the reference models' at the attacker's samples."""
    design = context.design
    candidates = design.sets.candidates
    shape = joined(context, keys["target"], "candidates").shape
    asked = {group: [key for part in parts for key in keys.get(part, ())] for group, parts in SHOWN_AS.items()}
    found = {
        group: joined(context, asked[group], "candidates") if asked[group] else np.zeros((0, *shape[1:]), np.float32)
        for group in GROUPS
    }
    samples = joined(context, keys["reference"], "samples")
    return Posteriors(
        posterior=found,
        star={group: stars(design, found[group], candidates) for group in GROUPS},
        shadow_posterior=samples,
        shadow_member=sampled(design),
        shadow_star=stars(design, samples, design.samples),
    )


def labels(context: Context, job: Job) -> Labels:
    """Return what was asked with labels only."""
    design = context.design
    order = unpack_arrays(context.store.get("select", job.document["order"]).read(SELECTION))["order"]
    rows = order[: design.plan.audit.asked].astype(np.int64)
    asked: dict[str, dict[Group, dict[str, NDArray[Any]]]] = {}
    for kind in job.document["labels"]:
        if kind != "pairs":
            asked[kind] = {group: answered(context, kind, group) for group in GROUPS}
    predicted = {group: posterior_labels(context, design, group)[:, rows] for group in GROUPS}
    true = design.true_star(design.sets.candidates[rows])
    star = {group: filled(true, said) for group, said in predicted.items()}
    extra: dict[str, Any] = {}
    if "distances" in asked:
        extra["distance"] = {group: found["distance"] for group, found in asked["distances"].items()}
    if "pairs" in job.document["labels"]:
        pairs = pair_answers(context, job)
        confidence = joined(context, job.document["fit_points"], "fit")
        fit_star = stars(design, confidence, design.fit_points)
        confidence = np.take_along_axis(confidence, fit_star[..., None], axis=-1)[..., 0].astype(np.float64)
        models = len(pairs) if design.plan.audit.reconstruction.pairs == "reference" else len(confidence)
        extra |= {"fit_distance": pairs, "fit_confidence": confidence[:models], "fit_points": design.fit_points}
    if "votes" in asked:
        extra["votes"] = {group: found["share"] for group, found in asked["votes"].items()}
    names = {"distances": "distance", "votes": "votes"}
    return Labels(
        rows=rows,
        predicted=predicted,
        star=star,
        label=design.own_labels(design.sets.candidates),
        candidates=design.sets.candidates,
        queries={names[kind]: int(found["target"]["queries"].max()) for kind, found in asked.items()},
        **extra,
    )


def answered(context: Context, kind: str, group: Group) -> dict[str, NDArray[Any]]:
    """Return the answers of one kind of a group, as attacks are shown it, by name, (models, M) each."""
    design = context.design
    units = [
        [
            unpack_arrays(context.store.get("query", design.query_job(kind, part, unit, shard).key).read(ANSWERS))
            for shard in range(design.shards())
        ]
        for part in SHOWN_AS[group]
        for unit in range(len(design.units(part)))
    ]
    if not units:
        return {name: np.zeros((0, design.plan.audit.asked)) for name in ("distance", "share", "queries")}
    return {
        name: np.concatenate([np.concatenate([part[name] for part in shards], axis=1) for shards in units])
        for name in units[0][0]
    }


def pair_answers(context: Context, job: Job) -> NDArray[np.float64]:
    """Return the distances (models, P) at the attacker's own points."""
    return joined(context, job.document["labels"]["pairs"], "distance")


def posterior_labels(context: Context, design: TmiaDesign, group: Group) -> NDArray[np.int64]:
    """Return the label (models, K) that each model of a group, as attacks are shown it, gives to each candidate.

    Read off its posteriors: the same answer as that to one question for a label.
    """
    keys = [
        design.query_job("posteriors", part, unit, 0).key
        for part in SHOWN_AS[group]
        for unit in range(len(design.units(part)))
    ]
    if not keys:
        return np.zeros((0, len(design.sets.candidates)), dtype=np.int64)
    found: NDArray[np.int64] = joined(context, keys, "candidates").argmax(-1).astype(np.int64)
    return found


def selections(context: Context, design: TmiaDesign) -> tuple[dict[str, NDArray[np.bool_]], list[dict[str, Any]]]:
    """Return what each selector chooses (K,), and a row about each: its rule, its threshold, how many it chose."""
    found = unpack_arrays(context.store.get("select", design.select_job().key).read(SELECTION))
    alpha, rare = design.plan.audit.alpha, design.plan.audit.neighbours.rare
    selected, rows = {}, []
    for name in design.plan.audit.selectors:
        scores = Scores(found[f"score.{name}"], found.get(f"reference.{name}"))
        rule, given = rule_of(name, alpha.model_dump(), scores.reference is not None, rare)
        selected[name] = chosen(scores, **given)
        if name == "none":
            selected[name][random_sample(found["order"], design.plan.audit.asked) :] = False
        threshold = given.get("alpha")
        if "quantile" in given and scores.reference is not None:
            threshold = float(np.quantile(scores.reference, given["quantile"]))
        count = int(selected[name].sum())
        rows.append({"selector": name, "rule": rule, "threshold": threshold, "chosen": count})
    return selected, rows


def rule_of(name: str, alpha: Mapping[str, Any], quantiles: bool, rare: float) -> tuple[str, dict[str, Any]]:
    """Return in words, and as arguments of ``chosen``, how a selector's scores are cut.

    ``quantiles``: it has scores of reference samples. ``none`` is a random sample, all of which are asked with labels;
    ``neighbours`` cuts where PMIA does, below ``rare`` expected neighbours.
    """
    if name == "none":
        return "a random sample of the candidates", {"quantile": 0.5}
    if name == "neighbours":
        return f"fewer than {rare:g} expected neighbours", {"alpha": -rare}
    if alpha["size"] is not None:
        return f"the {alpha['size']} highest scores", {"size": alpha["size"]}
    if alpha["quantile"] is not None and quantiles:
        return f"above the {alpha['quantile']:g} quantile of reference samples", {"quantile": alpha["quantile"]}
    if alpha["absolute"] is not None:
        return f"above {alpha['absolute']:g}", {"alpha": alpha["absolute"]}
    raise RuntimeError(f"selector {name} has no scores of reference samples to take a quantile of")


def narrowed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each selection of which only a part was asked with labels."""
    return [
        f"selector {row['selector']} chose {row['chosen']} candidates, of which {row['asked']} were asked with labels "
        "(audit.asked); its cells speak about those, the foremost"
        for row in rows
        if row["asked"] < row["chosen"]
    ]


def reconstruction(labels: Labels, settings: JudgeSettings, attacks: Sequence[str]) -> list[dict[str, Any]]:
    """Return the fitted map as a curve, with some of its pairs; nothing where no attack uses it."""
    if not any(ATTACKS[name].reconstructs for name in attacks):
        return []
    pairs, found = fitted_pairs(labels, settings), fitted_map(labels, settings)
    grid = np.linspace(pairs.distance.min(), pairs.distance.max(), GRID)
    step = max(1, -(-len(pairs.distance) // SHOWN))
    return [
        {
            "map": found.name,
            "pairs": found.pairs,
            "dropped": found.dropped,
            "rmse": found.rmse,
            "source": pairs.source,
            "curve": {"distance": grid.tolist(), "confidence": found.predict(grid).tolist()},
            "points": {
                "distance": pairs.distance[::step].tolist(),
                "confidence": pairs.confidence[::step].tolist(),
            },
        }
    ]


def exposed(
    design: TmiaDesign, rulings: Mapping[str, Ruling], selected: Mapping[str, NDArray[np.bool_]]
) -> list[dict[str, Any]]:
    """Return the candidates that a label-only attack finds most often among the targets that trained on them.

    By ``tmia_distance`` (else the plan's first label-only attack), among what any selector but ``none`` chose.
    """
    named = [name for name in rulings if ATTACKS[name].access == "labels" and ATTACKS[name].ranked]
    picked = [name for name in selected if name != "none"] or list(selected)
    if not named:
        return []
    attack = "tmia_distance" if "tmia_distance" in named else named[0]
    ruling, sets, targets = rulings[attack], design.sets, design.plan.asked_targets
    called, member = ruling.decision["target"][:targets], sets.membership[:targets, ruling.rows]
    hits, wrong, inside = (called & member).sum(0), (called & ~member).sum(0), member.sum(0)
    any_selector = np.any([selected[name] for name in picked], axis=0)[ruling.rows]
    order = np.lexsort([wrong, -hits])
    return [
        {
            "attack": attack,
            "selector": " or ".join(name for name in picked if selected[name][ruling.rows[place]]),
            "point_id": int(sets.candidates[ruling.rows[place]]),
            "label": str(design.data.classes[design.data.labels[sets.candidates[ruling.rows[place]]]]),
            "hits": int(hits[place]),
            "targets": int(inside[place]),
            "false_calls": int(wrong[place]),
        }
        for place in order
        if any_selector[place] and hits[place]
    ][:EXPOSED]
