"""Stage score: the attacks judge the targets and the null models of one pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.mia.answers import Distances, Inputs, case_of
from audits.mia.attacks import MIA_ATTACKS
from audits.mia.attacks.base import FEWEST
from audits.seeds import Purpose
from audits.statistics.pair_guesses import SHARES, pair_guesses
from audits.statistics.roc import auc
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.attempts import Attempts
from orchestrator.engine.run.scores import SCORES
from orchestrator.engine.store.payloads import pack_json, pack_table, unpack_arrays
from orchestrator.mia.stages.asking import ANSWERS, JUDGED, SHADOWS, STRANGERS
from orchestrator.mia.stages.context import Context
from orchestrator.mia.stages.given_details import without_model, without_pairs
from orchestrator.mia.stages.points import outside_points, pool_points
from orchestrator.mia.stages.walking import DISTANCES

if TYPE_CHECKING:
    from audits.arrays import Bools
    from audits.mia.answers import Case
    from audits.mia.attacks import Finding
    from orchestrator.mia.design import Fitted, MiaDesign

DETAILS = "details.json"
TARGET, NULL, OWN = "target", "null", "own"


def score(context: Context, job: Job) -> dict[str, bytes]:
    """Let all attacks of the plan judge a pool; the truth joins only afterwards."""
    import pyarrow as pa

    design, attempts = context.design, Attempts()
    case = case_at(context, job.unit)
    findings: dict[str, Finding] = {}
    budget: list[dict[str, Any]] = []
    without: list[dict[str, Any]] = []
    for name in design.plan.audit.attacks:
        found = attempts.of(name, partial(finding_of, design, job.unit, case, name))
        if found is not None:
            findings[name] = found[0]
            budget += found[1]
            without += found[2]
    attempts.require_one(design.plan.audit.attacks)
    tables = [pa.table(columns(design, job.unit, name, found)) for name, found in findings.items()]
    told = {
        "budget": budget,
        "guesses": [row for name, found in findings.items() for row in guesses(context, job.unit, name, found)],
        "recognised": recognised(design, job.unit, findings),
        "known": {name: found.known for name, found in findings.items()},
        **({} if design.given is None else {"without": without, "blind": without_model(design, case)}),
    }
    return {SCORES: pack_table(pa.concat_tables(tables)), DETAILS: pack_json(told), **attempts.files()}


def finding_of(
    design: MiaDesign, pool: int, case: Case, attack: str
) -> tuple[Finding, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the finding of an attack, what it finds with some of the shadows, and without each pair of them."""
    found = MIA_ATTACKS[attack]().judge(case)
    again = [] if design.given is None else without_pairs(design, case, attack)
    return found, at_budgets(design, pool, case, attack), again


def case_at(context: Context, pool: int) -> Case:
    """Return what there is to read about the judged models of a pool."""
    design = context.design
    read = unpack_arrays(context.store.get("ask", design.ask_key(pool)).read(ANSWERS))
    distances = None
    if design.walks:
        walked = unpack_arrays(context.store.get("walk", design.walk_key(pool)).read(DISTANCES))
        distances = Distances(design.boundary_points(pool), walked["distance"], walked["known"], int(walked["queries"]))
    (x, y), (known, known_y) = (
        (points.all()[0].flatten(1).cpu().numpy(), points.y.cpu().numpy())
        for points in (pool_points(context, pool), outside_points(context))
    )
    shadows = None
    if SHADOWS in read:
        half = np.stack([model.half for model in design.of(pool, "shadow")])
        shadows = read[SHADOWS], read[f"known.{SHADOWS}"], half
    return case_of(
        read[JUDGED], read[f"known.{JUDGED}"], Inputs(x, known, y, known_y), ~design.taught(pool).planted, shadows,
        distances, (read[STRANGERS], read[f"known.{STRANGERS}"]) if STRANGERS in read else None,
    )  # fmt: skip


def members(design: MiaDesign, pool: int) -> Bools:
    """Return which points of a pool (T, 2n) its judged models trained on: null models none."""
    own = [model.half & (model.pool == pool) for model in design.models_judged(pool)]
    return np.stack(own)


def columns(design: MiaDesign, pool: int, attack: str, found: Finding) -> dict[str, Any]:
    """Return the rows of the scores table of one attack, column by column: each judged model at each point."""
    models_judged = design.models_judged(pool)
    ids, places = design.drawn.pools[pool], found.points
    models, points = found.score.shape
    taught = design.taught(pool)
    return {
        "attack": [attack] * (models * points),
        "access": [MIA_ATTACKS[attack].access] * (models * points),
        "pool": np.full(models * points, pool, np.int32),
        "role": np.repeat([role_of(model, pool) for model in models_judged], points).tolist(),
        "target": np.repeat(np.array([number_of(model) for model in models_judged], np.int32), points),
        "point_id": np.tile(ids[places], models),
        "label": np.tile(design.data.labels[ids[places]].astype(np.int32), models),
        "canary": np.tile(taught.planted[places], models),
        "member": members(design, pool)[:, places].ravel(),
        "score": found.score.ravel(),
        "p_value": found.p_values().ravel(),
        **{f"decision_{rate:g}": found.decide(rate).ravel() for rate in design.plan.audit.fpr},
        "queries": np.full(models * points, found.queries, np.int32),
    }


def role_of(model: Fitted, pool: int) -> str:
    """Return what a judged model is to a pool."""
    if model.group == "own":
        return OWN
    return TARGET if model.pool == pool else NULL


def number_of(model: Fitted) -> int:
    """Return the number of a judged model in tables: own models stand behind the one target, which is given."""
    return 1 + model.index if model.group == "own" else 2 * model.pool + model.index


def at_budgets(design: MiaDesign, pool: int, case: Case, attack: str) -> list[dict[str, Any]]:
    """Return AUC and calls by each target of an attack with some of the shadows, twice as many from row to row.

    No shadow is trained for it. Nothing of attacks that are not fitted to shadows.
    """
    if MIA_ATTACKS[attack].shadows < FEWEST:
        return []
    member, ordinary = members(design, pool)[: len(design.of(pool, "target"))], case.ordinary
    rows = []
    for count in budgets(design.plan.split.shadows):
        found = MIA_ATTACKS[attack]().judge(case.with_shadows(count))
        for target in range(len(member)):
            inside, outside = member[target] & ordinary, ~member[target] & ordinary
            calls = {rate: found.decide(rate)[target] for rate in design.plan.audit.fpr}
            rows.append(
                {
                    "attack": attack,
                    "shadows": count,
                    "target": target,
                    "auc": auc(found.score[target, ordinary], member[target, ordinary]),
                    "calls": [
                        {"fpr": rate, "inside": float(call[inside].sum()), "outside": float(call[outside].sum())}
                        for rate, call in calls.items()
                    ],
                    "inside": int(inside.sum()),
                    "outside": int(outside.sum()),
                }
            )
    return rows


def budgets(shadows: int) -> list[int]:
    """Return the numbers of shadows of which an attack's power is told: 4, 8, 16, … and all."""
    found = [count for count in (FEWEST * 2**step for step in range(20)) if count < shadows]
    return [*found, shadows]


def guesses(context: Context, pool: int, attack: str, found: Finding) -> list[dict[str, Any]]:
    """Return what an attack guesses about pairs of points: of the first target, and of a null model by its coins.

    Of the first twin alone: both hang on the same coins. Nothing of attacks that ask some points only, and where points
    come in groups, which are in or out together. Of a given target only where its coins are said to be random.
    """
    design = context.design
    if MIA_ATTACKS[attack].subset or design.data.groups is not None or not random_coins(design):
        return []
    half, seed = members(design, pool)[0], context.seed(Purpose.PAIR, str(pool))
    rows = {TARGET: 0, **({NULL: 2} if design.null_models(pool) else {})}
    return [
        {"attack": attack, "role": role, "share": share, **asdict(pair_guesses(found.score[row], half, share, seed))}
        for role, row in rows.items()
        for share in SHARES
    ]


def random_coins(design: MiaDesign) -> bool:
    """Say whether chance decided who is in the half of a target: of a given one as its plan says."""
    return design.plan.target is None or design.plan.target.by_chance


def recognised(design: MiaDesign, pool: int, findings: Mapping[str, Finding]) -> dict[str, Any]:
    """Return in which share of the shadows that had a point the plan's judge recognises it; nothing where none says."""
    found = findings.get(design.plan.judge)
    if found is None or found.recognised is None:
        return {}
    ids = design.drawn.pools[pool][found.points]
    return {"points": ids.tolist(), "share": [round(float(share), 4) for share in found.recognised]}
