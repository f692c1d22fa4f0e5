"""An estimate for people: a table of stages and a few lines of totals."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from audits.errors import how_many
from orchestrator.engine.cost.estimate import Cost
from orchestrator.engine.durations import seconds
from orchestrator.engine.media import terminal
from orchestrator.engine.store.inventory import size_text


def cost_table(cost: Cost) -> Table:
    """Return the table of stages: what there is to do, what is found in the store, how long it takes."""
    what = "choice" if cost.audited else "sweep" if cost.sweep else "plan"
    table = Table(title=f"What this {what} costs", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("stage")
    for name in ("needed", "in the store", "to do", "s each", "one worker", "disk"):
        table.add_column(name, justify="right")
    table.add_column("timed by")
    for stage in cost.stages:
        table.add_row(
            stage.stage,
            str(stage.needed),
            str(stage.reused),
            str(stage.missing),
            f"{stage.unit_seconds:.2g}" if stage.missing else "",
            seconds(stage.seconds) if stage.missing else "",
            size_text(stage.bytes) if stage.bytes else "",
            Text(terminal(stage.basis) if stage.missing else ""),
        )
    return table


def cost_lines(cost: Cost) -> Iterator[str]:
    """Yield the totals: settings, time, GPU-hours, disk, queries, and how far the numbers can be trusted."""
    if cost.audited:
        yield (
            f"settings: {cost.settings} are rehearsed; the audit is priced with the plan's own and the dearest other "
            f"({', '.join(cost.audited)}); what they share is counted once"
        )
    elif cost.sweep:
        yield f"settings: {cost.settings}; what they share is counted once"
    where = f"with {cost.workers} worker{'s' * (cost.workers > 1)}" if cost.workers else "in the calling process"
    where += f", {cost.workers_per_model} to a model" if cost.workers_per_model > 1 else ""
    if cost.images_per_second is not None:
        yield f"time: about {seconds(cost.seconds)} {where}, {cost.worker_hours:.3g} worker-hours in all"
    else:
        yield f"time: about {seconds(cost.seconds)} {where} on {cost.device}"
    if cost.gpu_hours is not None:
        yield f"GPU: about {cost.gpu_hours:.2g} GPU-hours"
    yield f"disk: about {size_text(cost.bytes)} more in {cost.store}"
    if cost.logged_models:
        models = how_many(cost.logged_models, "model")
        yield f"MLflow: {models}, {size_text(cost.logged_bytes)} of weights, less those it has"
    for access in ("labels", "posteriors"):
        asked = [entry for entry in cost.queries if entry.access == access]
        if asked:
            each = ", ".join(f"{entry.attack} {entry.per_target}" for entry in asked)
            total = sum(entry.total for entry in asked)
            settings = "both settings" if len(cost.audited) == 2 else "all settings"
            where = f"per target over {settings}" if cost.sweep and len(cost.audited) != 1 else "per target"
            yield f"queries for {access}, {where}: {each}; in all {total}"
    if readers := [entry.attack for entry in cost.queries if entry.access == "white_box"]:
        yield f"no queries, reads the weights: {', '.join(readers)}"
    if any(stage.basis == "a probe" and stage.missing for stage in cost.stages):
        yield "probe: a few training steps on random data, scaled; right to within a factor of 2 or 3"
    if cost.images_per_second is not None:
        rate = f"{cost.images_per_second:,.0f}".replace(",", " ")
        yield f"as stated: one worker trains the plan's model on {rate} images a second, and reads them as fast"
