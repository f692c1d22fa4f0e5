"""What the gate and the verdict of one result say of its controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.cli.finished import headline_of
from orchestrator.judgement.gate import ungated
from orchestrator.judgement.rows import FAILED, HELD
from orchestrator.kinds import KINDS


def at_odds(document: Mapping[str, Any]) -> list[str]:
    """Return the controls of a result of one setting that its verdict does not have by this name, or judges otherwise.

    The gate is one without limits, which looks at all lines together: of a result with controls of its own, the verdict
    may tell of one that failed a finding of fewer attacks alone.
    """
    if document["kind"] not in KINDS or not document.get("verdict") or len(document["settings"]) > 1:
        return []
    told = {each["name"]: each["state"] for each in document["verdict"]["controls"]}
    found = []
    for control in ungated(headline_of(document), document).controls:
        name = control.name.partition(" (")[0]
        if name not in told:
            found.append(f"{control.name}: not in {[*told]}")
        elif {control.state, told[name]} == {HELD, FAILED} and not (told[name] == FAILED and document.get("controls")):
            found.append(f"{control.name}: {told[name]} in the verdict, in the gate {control.state}: {control.why}")
    return found
