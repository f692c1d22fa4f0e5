"""Edits of users' own code between two runs of one process: nothing made by the old code stays in memory."""

from __future__ import annotations

from audits.own.sources import forget_edited
from orchestrator.engine.data import data_of
from orchestrator.engine.jobs.code_version import forget_users_code


def follow_edits() -> None:
    """Forget users' modules if one was edited since it was imported, their versions, and the data that they returned.

    To be called where a command or a run begins, and never in the midst of one.
    """
    if forget_edited():
        forget_users_code()
        data_of.cache_clear()
