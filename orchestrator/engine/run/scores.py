"""The scores tables of finished settings, read from the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.engine.setting import Setting
from orchestrator.engine.store.payloads import unpack_table
from orchestrator.engine.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

SCORES = "scores.parquet"
"""The file of a stage that makes scores."""


def stored_scores(settings: Sequence[Setting], store: Store) -> list[tuple[str, pa.Table]]:
    """Return (setting, scores) of every job of stage score."""
    return [
        (setting.name, unpack_table(store.get(job.stage, job.key).read(SCORES)))
        for setting in settings
        for job in setting.of("score")
    ]


def joined_scores(settings: Sequence[Setting], store: Store, together: bool = False) -> pa.Table:
    """Return the scores of all settings as one table, the setting in front; what a setting does not have is null.

    ``together`` is for kinds that pool settings; here it changes nothing.
    """
    import pyarrow as pa

    tables = [
        table.add_column(0, "setting", pa.array([name] * len(table), pa.string()))
        for name, table in stored_scores(settings, store)
    ]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()
