"""A short Markdown summary of a finished run, for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.engine.media import markdown
from orchestrator.judgement.gate import is_number
from orchestrator.judgement.gate_result import GateResult, trial_warning
from orchestrator.judgement.lines import Headline, Line
from orchestrator.judgement.wording import STATES

MOST_LINES = 8


def summary(
    document: Mapping[str, Any],
    gate: GateResult,
    headline: Headline,
    lines: Sequence[Line],
    words: Sequence[str],
    page: str,
) -> str:
    """Return the summary of a result (the content of result.json).

    ``lines``: those of its headline; ``words``: sentences about it; ``page``: where its page is, in Markdown.
    """
    head = str(document["name"]) + (f": gate {gate.outcome}" if gate.limits else "")
    warning = trial_warning(document)
    said = filter(None, (warning[:1].upper() + warning[1:], *words))
    blocks = [f"## {markdown(head)}", *map(markdown, said), *limit_table(gate), *control_table(gate)]
    blocks += number_table(headline, lines)
    if count := len(document.get("warnings", ())):
        blocks.append(f"{count} warning{'s' if count > 1 else ''}, listed on the page.")
    seed, plan = document.get("seed"), str(document.get("plan_hash", ""))[:12]
    blocks.append(f"Page: {page}. {markdown(f'Seed {seed}, plan {plan}.')}")
    return "\n\n".join(blocks) + "\n"


def summary_of_error(command: str, message: str, code: int) -> str:
    """Return the summary of a ``command`` that ended with an error and an exit ``code``, and so has no result."""
    head = f"## {markdown(command)}: exit code {code}"
    return f"{head}\n\n{markdown(message)}\n\nPage: none, since the command did not finish.\n"


def is_summary(data: bytes) -> bool:
    """Say whether a file is one that is made here, by its head and its last line."""
    return data.startswith(b"## ") and data.rstrip().rpartition(b"\n")[2].startswith(b"Page: ")


def limit_table(gate: GateResult) -> Iterator[str]:
    """Yield the table of limits, if there are any."""
    if gate.limits:
        rows = ((limit.limit, limit.outcome, limit.why) for limit in gate.limits)
        yield table(("limit", "outcome", "why"), rows)


def control_table(gate: GateResult) -> Iterator[str]:
    """Yield the table of controls, if there are any."""
    if gate.controls:
        rows = ((each.name, STATES[each.state], each.why) for each in gate.controls)
        yield table(("control of these limits’ lines" if gate.limits else "control", "", "why"), rows)


def number_table(headline: Headline, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the table of the worst lines among which a limit without a place looks, by the first metric."""
    shown = sorted((line for line in lines if line.worst), key=lambda line: -height(line, headline.summary[0]))
    if shown:
        rows = [(line.where, *(number(line, name) for name in headline.summary)) for line in shown[:MOST_LINES]]
        yield table((f"worst {len(rows)} of {len(shown)} lines", *headline.summary), rows)


def height(line: Line, metric: str) -> float:
    """Return a number of a line, less than any other where it was not measured or is void."""
    value = line.values.get(metric)
    return -1.0 if value is None or not is_number(value) or line.is_void(metric) else value


def number(line: Line, metric: str) -> str:
    """Return a number of a line as the table has it."""
    if line.is_void(metric):
        return "void"
    value = line.values.get(metric)
    return "–" if value is None or not is_number(value) else f"{value:.3f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    first, *lines = [" | ".join(map(markdown, line)) for line in (head, *rows)]
    return "\n".join(f"| {line} |" for line in (first, " | ".join(["---"] * len(head)), *lines))
