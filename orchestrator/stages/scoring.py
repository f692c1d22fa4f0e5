"""Stage score: every attack judges the candidates of a shadow set; the truth joins after they have spoken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.schedule import Job
from orchestrator.stages.searching import EVIDENCE
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays, pack_table, unpack_arrays

if TYPE_CHECKING:
    from audits.attacks.evidence import Evidence

SCORES = "scores.parquet"
DETAILS = "details.safetensors"


def score(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Judge all candidates of a shadow set for one method; the truth joins after the attacks have spoken."""
    import pyarrow as pa

    from audits.attacks import ATTACKS
    from audits.attacks.apollo_paper import said
    from audits.attacks.heat import heat_map
    from orchestrator.score_table import score_rows

    found = evidence(shop, job)
    asked = shop.scheduler.partition.candidates[job.shadow_set]
    labels = shop.scheduler.data.labels[asked.ids]
    parts = []
    for name in shop.plan.audit.attacks:
        attack = ATTACKS[name]()
        finding = attack.judge(found)
        parts.append(score_rows(job.label, attack, finding, asked, labels, job.shadow_set, shop.plan.audit.fpr))
    walks = found.walk("apollo")
    details = {"said": said(walks), "forgotten": asked.forgotten, "target": asked.target}
    return {
        SCORES: pack_table(pa.concat_tables(parts)),
        DETAILS: pack_arrays(details | heat_map(walks, asked.forgotten)),
    }


def evidence(shop: Workshop, job: Job) -> Evidence:
    """Return the evidence of a score job, its shards joined."""
    from audits.attacks.evidence import Evidence, join_posteriors, join_walks, posteriors_from, walks_from

    online = [arrays(shop, "search", key) for key in job.document["online"]]
    offline = [arrays(shop, "search", key) for key in job.document["offline"]]
    return Evidence(
        {kind: join_walks([walks_from(part, kind) for part in online]) for kind in ("apollo", "random")},
        join_walks([walks_from(part, job.label) for part in offline]) if offline else None,
        join_posteriors([posteriors_from(part, "posteriors") for part in online]),
    )


def arrays(shop: Workshop, stage: str, key: str) -> dict[str, Any]:
    """Return the arrays of an evidence artefact."""
    return unpack_arrays(shop.store.get(stage, key).read(EVIDENCE))
