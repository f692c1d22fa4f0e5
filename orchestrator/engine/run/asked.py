"""The number of questions to a given model of which only answers are known, and of the answers of its server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.regular import opened
from orchestrator.engine.given_files import STAGE, target_of
from orchestrator.engine.run.worker import ASKED
from orchestrator.engine.store.faults import damaged
from orchestrator.engine.store.paths import is_name
from orchestrator.engine.store.payloads import unpack_json

if TYPE_CHECKING:
    from orchestrator.engine.kind import Finished

ABOUT = "given.json"
"""The file of such a model in the store: its ``form``, ``field`` of the plan, ``reading``, and ``endpoint``."""


def asked_of(finished: Finished) -> dict[str, Any] | None:
    """Return what result.json says about the queries of a run; None where none went to such a model.

    ``asked``: inputs about which the run's jobs asked the target, whenever they were done; ``served``: inputs that its
    server answered, all that the record holds; ``record``: the folder of the answers, or the table that was given.
    """
    target = target_of(finished.design.plan)
    if target is None or target.served is None:
        return None
    jobs = {(job.stage, job.key): job for setting in finished.settings for job in setting.jobs}
    asked, record, served = 0, target.weights, 0
    for (stage, key), job in jobs.items():
        artefact = finished.store.get(stage, key)
        if ASKED in artefact.files:
            asked += unpack_json(artefact.read(ASKED))["asked"]
        if stage == STAGE and job.member == "weights" and target.form() == "address":
            name = unpack_json(artefact.read(ABOUT)).get("folder")
            if not isinstance(name, str) or not is_name(name):
                raise damaged(stage, key, ABOUT, "names no folder of a record")
            folder = Path(target.served.record or "") / name
            record, served = str(folder), answered(folder)
    return {"asked": asked, "served": served, "record": record}


def answered(folder: Path) -> int:
    """Return how many answers the record of an endpoint holds."""
    import pyarrow.parquet as pq

    count = 0
    for file in folder.glob("[!.]*.parquet"):
        with opened(file) as source:
            count += pq.read_metadata(source).num_rows
    return count
