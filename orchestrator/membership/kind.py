"""The kind ``tmia``: what becomes of a membership audit once its jobs are done."""

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

RATES = ("precision", "coverage", "fpr")
METRICS = (
    *RATES,
    *(f"{name}_{end}" for name in RATES for end in ("low", "high")),
    "auc",
    "fresh_fpr",
    "candidates",
    "queries_per_point",
)


class MembershipKind(AuditKind):
    """Which points was a transfer-learning model, or its teacher, trained on?"""

    default_plan = "tmia-fashion14"
    description = "Membership inference against transfer learning from labels alone (Chen et al. 2021), three modes."

    def plan_from(self, raw: Mapping[str, Any], notes: tuple[str, ...]) -> BasePlan:
        """See ``AuditKind``."""
        from orchestrator.membership.plan import membership_plan_from

        return membership_plan_from(raw, notes)

    def scheduler(self, plan: Any, data: Dataset, device: str, store: Store | None) -> Any:
        """See ``AuditKind``."""
        from orchestrator.membership.schedule import MembershipScheduler

        return MembershipScheduler(plan, data, device, store)

    def check_fit(self, plan: Any, *, absent: bool) -> None:
        """See ``AuditKind``."""
        from orchestrator.membership.plan_checks import check_membership_fit

        check_membership_fit(plan, absent)

    def probe(self, plan: BasePlan, device: str, timings: Timings) -> Probe:
        """See ``AuditKind``."""
        from orchestrator.membership.cost import MembershipProbe

        return MembershipProbe(plan, device, timings)

    def queries(self, settings: Iterable[tuple[BasePlan, Schedule]]) -> Iterator[Queries]:
        """See ``AuditKind``."""
        from orchestrator.membership.cost import membership_queries

        return membership_queries(settings)

    def scores(self, settings: Sequence[Setting], store: Store, *, pooled: bool) -> pa.Table:
        """See ``AuditKind``; membership audits are not pooled."""
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
        from orchestrator.membership.result import summed_up

        return summed_up(name, settings, store, scheduler, counts)

    def summary(self, setting: Setting, store: Store) -> dict[str, float]:
        """Return precision and coverage of each selection × attack, where they are defined."""
        from orchestrator.membership.result import details

        return {
            f"{cell['selection']}.{cell['attack']}.{name}": float(cell[name])
            for cell in details(setting, store)["cells"]
            for name in ("precision", "coverage")
            if cell[name] is not None
        }

    def report(self, out: Path, images: Images | None) -> Path:
        """See ``AuditKind``."""
        from orchestrator.report.membership.page import write_membership_report

        return write_membership_report(out, images)

    def images(self, document: Mapping[str, Any], data: Dataset) -> Images:
        """See ``AuditKind``."""
        from orchestrator.report.exposure import pixels_of

        return pixels_of([int(point["point_id"]) for point in document.get("exposed") or []], data)

    def markdown(self, out: Path) -> str:
        """See ``AuditKind``."""
        from orchestrator.report.membership.markdown import membership_markdown
        from orchestrator.report.reading import read_result

        return membership_markdown(read_result(out))

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        """See ``AuditKind``."""
        from orchestrator.report.membership.tables import membership_tables

        return membership_tables(document)

    def closing_lines(self, document: Mapping[str, Any]) -> list[str]:
        """See ``AuditKind``."""
        flagged = [row for row in document["fit"] if row["flag"] and row["group"] == "target"]
        return [
            f"{row['setting']}: {row['group']} models ({row['side']}) are not normally fitted: train "
            f"{row['train_accuracy']:.3f}, test {row['test_accuracy']:.3f}"
            for row in flagged
        ]

    def metrics(self, document: Mapping[str, Any], setting: str) -> dict[str, float]:
        """See ``AuditKind``: ``selection.attack.metric``, and accuracies as ``fit.side.group.metric``."""
        found = {
            f"{cell['selection']}.{cell['attack']}.{name}": float(cell[name])
            for cell in document["table"]
            if cell["setting"] == setting
            for name in METRICS
            if cell.get(name) is not None
        }
        for row in document["fit"]:
            if row["setting"] == setting:
                for name in ("train_accuracy", "test_accuracy", "gap"):
                    if row[name] is not None:
                        found[f"fit.{row['side']}.{row['group']}.{name}"] = float(row[name])
        return found

    def main_setting(self, document: Mapping[str, Any]) -> str:
        """See ``AuditKind``: the one that is the plan itself."""
        from orchestrator.report.reading import main_setting

        return main_setting(document["plan"], document["settings"])

    def refuse_gates(self, texts: Sequence[str], plan: Any) -> None:
        """See ``AuditKind``."""
        from orchestrator.membership.gate import check_gates, parse_gate

        check_gates([parse_gate(text) for text in texts], plan)

    def failed_gates(self, texts: Sequence[str], document: Mapping[str, Any], plan: Any) -> list[str]:
        """See ``AuditKind``."""
        from audits.membership.attacks import ATTACKS
        from orchestrator.membership.gate import failures, parse_gate

        asked = [
            (name, attack)
            for name, changes in plan.settings().items()
            for attack in plan.changed(changes).audit.attacks
            if ATTACKS[attack].access == "labels"
        ]
        return failures([parse_gate(text) for text in texts], document["table"], asked)
