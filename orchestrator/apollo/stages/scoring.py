"""Stage score: every attack judges the candidates of a shadow set; the truth joins after they have spoken."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.budget import at_budget
from audits.apollo.attacks.heat import heat_map
from audits.apollo.attacks.paper_rule import said
from audits.apollo.attacks.three_way import groups_of
from audits.apollo.evidence import Evidence
from audits.apollo.evidence.left_out import left_out
from orchestrator.apollo.score_table import score_rows
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.searching import part
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.attempts import Attempts
from orchestrator.engine.store.payloads import pack_arrays, pack_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from audits.apollo.attacks.base import Attack, Finding
    from audits.apollo.design.partition import Candidates

SCORES = "scores.parquet"
DETAILS = "details.safetensors"
WITHOUT = "without.safetensors"
"""What each attack on a given model says without each group of its shadows."""
THREE_GROUPS = ("apollo", "random_directions", "single_query")
BUDGETED = ("apollo", "random_directions")


def score(context: Context, job: Job) -> dict[str, bytes]:
    """Judge all candidates of a shadow set for one method; the truth joins after the attacks have spoken.

    An attack that raises is named in the artefact; the others are judged all the same.
    """
    import pyarrow as pa

    asked = context.design.partition.candidates[job.shadow_set]
    found = evidence(context, job, asked)
    labels = context.design.data.labels[asked.ids]
    attacks, rates = context.plan.audit.attacks, context.plan.audit.fpr

    def rows(name: str) -> pa.Table:
        attack = ATTACKS[name]()
        finding = finding_of(attack, found, three_groups=bool(asked.retained.any()))
        return score_rows(job.label, attack, finding, asked, labels, job.shadow_set, rates)

    attempts = Attempts()
    parts = [part for name in attacks if (part := attempts.of(name, partial(rows, name))) is not None]
    attempts.require_one(attacks)
    kept = details(found, asked, tuple(name for name in attacks if name not in attempts.failed), rates[0])
    files = {SCORES: pack_table(pa.concat_tables(parts)), DETAILS: pack_arrays(kept), **attempts.files()}
    if context.plan.target is None:
        return files
    heard = [name for name in attacks if name not in attempts.failed]
    return {**files, WITHOUT: pack_arrays(judged_without(found, asked, heard, rates))}


def judged_without(
    found: Evidence, asked: Candidates, attacks: Sequence[str], rates: Sequence[float]
) -> dict[str, NDArray[Any]]:
    """Return, for each attack, ``score`` and ``decision_RATE`` (G, K) with each of G groups of shadows left out.

    None of an attack with too few shadows. ``point_id``: (K,) the candidates. The walks stay those of all shadows: they
    are not searched again.
    """
    import numpy as np

    kept: dict[str, NDArray[Any]] = {"point_id": asked.ids}
    for name in attacks:
        attack = ATTACKS[name]()
        findings = [attack.judge(each) for each in left_out(found, attack.reads, retained=bool(asked.retained.any()))]
        if findings:
            kept[f"{name}.score"] = np.stack([each.score for each in findings])
            kept |= {f"{name}.decision_{rate:g}": np.stack([each.decide(rate) for each in findings]) for rate in rates}
    return kept


def evidence(context: Context, job: Job, asked: Candidates) -> Evidence:
    """Return the evidence of a score job, its shards joined."""
    parts = {kind: part(context, kind, keys) for kind, keys in job.document["evidence"].items()}
    return Evidence(parts, asked.forgotten, asked.unseen)


def finding_of(attack: Attack, found: Evidence, *, three_groups: bool) -> Finding:
    """Return the finding of ``attack``, with the log-odds of three groups if asked for and it tells them apart."""
    finding = attack.judge(found)
    if not (three_groups and attack.name in THREE_GROUPS):
        return finding
    walks = found.view(attack.access).walk(attack.reads[0])
    return dataclasses.replace(finding, groups=groups_of(walks))


def details(found: Evidence, asked: Candidates, attacks: tuple[str, ...], rate: float) -> dict[str, Any]:
    """Return what figures need beside the scores, about candidates that are not retained.

    The paper's rules and the heat map of Apollo's walks, if gathered; scores and decisions at smaller query budgets.
    """
    binary = ~asked.retained
    kept: dict[str, Any] = {"forgotten": asked.forgotten[binary], "target": asked.target[binary]}
    if "apollo" in found.parts:
        walks = found.walk("apollo")
        kept |= {"said": said(walks)[..., binary]} | heat_map(walks, asked.forgotten, asked.unseen)
    for name in BUDGETED:
        if name in attacks:
            own = at_budgets(name, found, rate)
            kept |= {f"budget.{name}.queries": own["queries"]}
            kept |= {f"budget.{name}.{column}": own[column][:, binary] for column in ("score", "decision")}
    return kept


def at_budgets(attack: str, found: Evidence, rate: float) -> dict[str, Any]:
    """Return ``queries`` (L,) and, with so many labels a candidate, ``score`` and ``decision`` (L, K) of an attack.

    ``rate``: the promised false-positive rate of the decisions. From stored walks; no model is asked again.
    """
    import numpy as np

    walks = found.walk(ATTACKS[attack].reads[0])
    queries = ladder(int(walks.queries.max()))
    findings = [at_budget(walks, count) for count in queries]
    return {
        "queries": np.array(queries, dtype=np.int64),
        "score": np.stack([finding.score for finding in findings]),
        "decision": np.stack([finding.decide(rate) for finding in findings]),
    }


def ladder(most: int) -> list[int]:
    """Return the budgets 1, 2, 3, 5, 9, 17, … below ``most``, and ``most``: the label at x, then ever twice as many."""
    steps = [1, *(1 + 2**power for power in range(most.bit_length()))]
    return [*(step for step in steps if step < most), most]
