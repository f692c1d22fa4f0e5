"""A finished run on the command line, by its result.json: its page, and the headline that its gate reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engine.kind import Page, load
from orchestrator.judgement.lines import Headline
from orchestrator.kinds import kind_named

SCORED = "score"
"""The kind of results of ``orch score``, which no plan has."""


def page_of(document: Mapping[str, Any]) -> Page:
    """Return what draws the page of a result."""
    if document["kind"] == SCORED:
        found: Page = load("orchestrator.scored.page.page:PAGE")
        return found
    return kind_named(str(document["kind"])).open_page()


def headline_of(document: Mapping[str, Any]) -> Headline:
    """Return the headline of a result."""
    if document["kind"] == SCORED:
        found: Headline = load("orchestrator.scored.headline:HEADLINE")
        return found
    return kind_named(str(document["kind"])).headline
