"""The kind ``gnq``: what becomes of a disclosure audit once its jobs are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.kinds import AuditKind, Images, joined_scores

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from audits.data.dataset import Dataset
    from orchestrator.estimate import Queries
    from orchestrator.jobs import Schedule
    from orchestrator.plan_base import BasePlan
    from orchestrator.probe import Probe, Timings
    from orchestrator.setting import Setting
    from orchestrator.store import Store


class DisclosureKind(AuditKind):
    """How much does a published model disclose about each point, and what does a defence gain?"""

    default_plan = "gnq-fashion14"
    description = "Gradient uniqueness of every training point (arXiv 2510.10902), removal against DP-SGD, in twins."

    def plan_from(self, raw: Mapping[str, Any], notes: tuple[str, ...]) -> BasePlan:
        """See ``AuditKind``."""
        from orchestrator.disclosure.plan import disclosure_plan_from

        return disclosure_plan_from(raw, notes)

    def scheduler(self, plan: Any, data: Dataset, device: str, store: Store | None) -> Any:
        """See ``AuditKind``."""
        from orchestrator.disclosure.schedule import DisclosureScheduler

        return DisclosureScheduler(plan, data, device, store)

    def check_fit(self, plan: Any, *, absent: bool) -> None:
        """See ``AuditKind``."""
        from orchestrator.disclosure.plan_checks import check_disclosure_fit

        check_disclosure_fit(plan, absent)

    def probe(self, plan: BasePlan, device: str, timings: Timings) -> Probe:
        """See ``AuditKind``."""
        from orchestrator.disclosure.cost import DisclosureProbe

        return DisclosureProbe(plan, device, timings)

    def queries(self, settings: Iterable[tuple[BasePlan, Schedule]]) -> Iterator[Queries]:
        """See ``AuditKind``."""
        from orchestrator.disclosure.cost import disclosure_queries

        return disclosure_queries(settings)

    def scores(self, settings: Sequence[Setting], store: Store, *, pooled: bool) -> pa.Table:
        """See ``AuditKind``; disclosure audits are not pooled."""
        return joined_scores(settings, store)

    def document(
        self,
        name: str,
        settings: Sequence[Setting],
        scores: pa.Table,
        store: Store,
        scheduler: Any,
        counts: Mapping[str, int],
    ) -> dict[str, Any]:
        """See ``AuditKind``."""
        from orchestrator.disclosure.result import summed_up

        return summed_up(name, settings, scores, store, scheduler, counts)

    def summary(self, setting: Setting, store: Store) -> dict[str, float]:
        """Return the mean AUC of each arm × attack on all contributors."""
        from orchestrator.disclosure.arm_rows import table
        from orchestrator.disclosure.result import read

        return {
            f"{row['arm']}.{row['attack']}.{row['shadows']}.auc": float(row["auc"])
            for row in table(read(setting, store), setting.plan.audit.level)
            if row["group"] == "contributors" and row["moment"] == "after" and row["auc"] is not None
        }

    def report(self, out: Path, images: Images | None) -> Path:
        """See ``AuditKind``."""
        from orchestrator.report.disclosure.page import write_disclosure_report

        return write_disclosure_report(out, images)

    def images(self, document: Mapping[str, Any], data: Dataset) -> Images:
        """See ``AuditKind``."""
        from orchestrator.report.exposure import pixels_of

        return pixels_of([int(point["point_id"]) for point in document.get("points") or []], data)

    def markdown(self, out: Path) -> str:
        """See ``AuditKind``."""
        from orchestrator.report.disclosure.markdown import disclosure_markdown
        from orchestrator.report.reading import read_result

        return disclosure_markdown(read_result(out))

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        """See ``AuditKind``."""
        from orchestrator.report.disclosure.tables import disclosure_tables

        return disclosure_tables(document)

    def closing_lines(self, document: Mapping[str, Any]) -> list[str]:
        """See ``AuditKind``."""
        from orchestrator.report.disclosure.tables import closing_lines

        return closing_lines(document)

    def metrics(self, document: Mapping[str, Any], setting: str) -> dict[str, float]:
        """See ``AuditKind``: ``arm.group.attack.shadows.metric``, and ``arm.metric`` of the arm's models."""
        found = {
            f"{row['arm']}.{row['group']}.{row['attack']}.{row['shadows']}.{name}": float(row[name])
            for row in document["table"]
            for name in ("auc", "auc_low", "auc_high")
            if row["setting"] == setting and row["moment"] == "after" and row[name] is not None
        }
        for row in document["arms"]:
            if row["setting"] == setting:
                numbers = {name: row[name] for name in ("test_accuracy", "train_accuracy", "epsilon", "trained_on")}
                numbers["headline.auc"] = (row["headline"] or {}).get("auc")
                found |= {f"{row['arm']}.{name}": float(value) for name, value in numbers.items() if value is not None}
        for row in document["inversions"]:
            if row["setting"] == setting and row["ssim_image"] is not None:
                found[f"{row['arm']}.inversion.{row['model']}.ssim_image"] = float(row["ssim_image"])
        for row in document["correlations"]:
            if row["setting"] == setting and row["spearman"] is not None:
                found[f"predicts.{row['outcome']}.{row['score']}"] = float(row["spearman"])
        return found

    def main_setting(self, document: Mapping[str, Any]) -> str:
        """See ``AuditKind``: the one that is the plan itself."""
        from orchestrator.report.reading import main_setting

        return main_setting(document["plan"], document["settings"])

    def refuse_gates(self, texts: Sequence[str], plan: Any) -> None:
        """See ``AuditKind``."""
        from orchestrator.disclosure.gate import check_gates, parse_gate

        check_gates([parse_gate(text) for text in texts], plan)

    def failed_gates(self, texts: Sequence[str], document: Mapping[str, Any], plan: Any) -> list[str]:
        """See ``AuditKind``."""
        from orchestrator.disclosure.gate import failures, parse_gate

        return failures([parse_gate(text) for text in texts], document["arms"])
