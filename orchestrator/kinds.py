"""The kinds of audits: what differs between them once the jobs are done, each behind one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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

Images = Mapping[int, Any]


class AuditKind(ABC):
    """How a plan becomes jobs, and finished jobs a scores table, result.json, a page, tables, metrics."""

    default_plan: ClassVar[str]
    description: ClassVar[str]
    making: ClassVar[tuple[str, str]] = ("to train", "training")
    """What is done to models, in words: "720 to train", and the title of its bar."""

    @abstractmethod
    def plan_from(self, raw: Mapping[str, Any], notes: tuple[str, ...]) -> BasePlan:
        """Return the checked plan of a plain mapping; raises ``PlanProblems``."""

    @abstractmethod
    def scheduler(self, plan: Any, data: Dataset, device: str, store: Store | None) -> Any:
        """Return what lists the jobs of a plan on its data."""

    @abstractmethod
    def check_fit(self, plan: Any, *, absent: bool) -> None:
        """Refuse a plan that does not fit its data; see ``check_against_data``."""

    @abstractmethod
    def probe(self, plan: BasePlan, device: str, timings: Timings) -> Probe:
        """Return what guesses the seconds of a plan's jobs."""

    @abstractmethod
    def queries(self, settings: Iterable[tuple[BasePlan, Schedule]]) -> Iterator[Queries]:
        """Yield, per attack, the queries of all ``settings`` to targets."""

    @abstractmethod
    def scores(self, settings: Sequence[Setting], store: Store, *, pooled: bool) -> pa.Table:
        """Return the scores table of all settings; ``pooled``: also as if they were one experiment."""

    @abstractmethod
    def document(
        self,
        name: str,
        settings: Sequence[Setting],
        scores: pa.Table,
        store: Store,
        scheduler: Any,
        counts: Mapping[str, int],
    ) -> dict[str, Any]:
        """Return the content of result.json."""

    @abstractmethod
    def summary(self, setting: Setting, store: Store) -> dict[str, float]:
        """Return the numbers by which a sweep compares settings, of one setting whose jobs are done."""

    @abstractmethod
    def report(self, out: Path, images: Images | None) -> Path:
        """Write the figures and the page of the run in ``out``."""

    @abstractmethod
    def images(self, document: Mapping[str, Any], data: Dataset) -> Images:
        """Return the pictures that the page shows, by point id."""

    @abstractmethod
    def markdown(self, out: Path) -> str:
        """Return the tables of the run in ``out`` as Markdown."""

    @abstractmethod
    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        """Return the tables for a terminal."""

    @abstractmethod
    def closing_lines(self, document: Mapping[str, Any]) -> list[str]:
        """Return what is said below the tables."""

    @abstractmethod
    def metrics(self, document: Mapping[str, Any], setting: str) -> dict[str, float]:
        """Return what tracking logs of a setting."""

    @abstractmethod
    def main_setting(self, document: Mapping[str, Any]) -> str:
        """Return the setting that a reader wants first."""

    @abstractmethod
    def refuse_gates(self, texts: Sequence[str], plan: Any) -> None:
        """Raise ``BadInput`` for a limit (METRIC=VALUE) that this plan's result could never be held to."""

    @abstractmethod
    def failed_gates(self, texts: Sequence[str], document: Mapping[str, Any], plan: Any) -> list[str]:
        """Return one line for each limit that a result does not keep."""


class ApolloKind(AuditKind):
    """Which points were unlearned?"""

    default_plan = "apollo-fashion14"
    description = "Label-only attack on unlearned models (arXiv 2506.09923), online and offline, with controls."
    making = ("to train or unlearn", "training and unlearning")

    def plan_from(self, raw: Mapping[str, Any], notes: tuple[str, ...]) -> BasePlan:
        """See ``AuditKind``."""
        from orchestrator.plan import apollo_plan_from

        return apollo_plan_from(raw, notes)

    def scheduler(self, plan: Any, data: Dataset, device: str, store: Store | None) -> Any:
        """See ``AuditKind``."""
        from orchestrator.schedule import Scheduler

        return Scheduler(plan, data, device, store)

    def check_fit(self, plan: Any, *, absent: bool) -> None:
        """See ``AuditKind``."""
        from orchestrator.plan_checks import check_fit, facts_of

        check_fit(plan, facts_of(plan.data, absent))

    def probe(self, plan: BasePlan, device: str, timings: Timings) -> Probe:
        """See ``AuditKind``."""
        from orchestrator.probe import Probe

        return Probe(plan, device, timings)

    def queries(self, settings: Iterable[tuple[BasePlan, Schedule]]) -> Iterator[Queries]:
        """See ``AuditKind``."""
        from orchestrator.estimate import label_queries

        return label_queries(settings)

    def scores(self, settings: Sequence[Setting], store: Store, *, pooled: bool) -> pa.Table:
        """See ``AuditKind``."""
        from orchestrator.score_table import pooled as together
        from orchestrator.score_table import whole_table

        parts = stored_scores(settings, store)
        return whole_table(together(parts) + parts if pooled else parts)

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
        from orchestrator.result import summed_up

        return summed_up(name, settings, scores, store, scheduler, counts)

    def summary(self, setting: Setting, store: Store) -> dict[str, float]:
        """Return the mean AUC over targets of each unlearning method × attack."""
        from audits.evaluation.summary import cells, per_target_auc

        table = self.scores([setting], store, pooled=False)
        columns = {name: table[name].to_numpy() for name in table.column_names}
        areas = {(cell.unlearner, cell.attack): per_target_auc(cell) for cell in cells(columns)}
        return {f"{method}.{attack}.auc": sum(each.values()) / len(each) for (method, attack), each in areas.items()}

    def report(self, out: Path, images: Images | None) -> Path:
        """See ``AuditKind``."""
        from orchestrator.report.render import write_report

        return write_report(out, images)

    def images(self, document: Mapping[str, Any], data: Dataset) -> Images:
        """See ``AuditKind``."""
        from orchestrator.report.exposure import shown_images

        exposed = document.get("exposed") or {}
        return shown_images(exposed, data) if exposed.get("points") else {}

    def markdown(self, out: Path) -> str:
        """See ``AuditKind``."""
        from orchestrator.report.markdown import markdown
        from orchestrator.report.reading import read_run

        return markdown(read_run(out))

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        """See ``AuditKind``."""
        from orchestrator.report.tables import main_table, sweep_table

        by_setting = sweep_table(document, document["plan"]["audit"]["attacks"][0])
        return [*([] if by_setting is None else [by_setting]), main_table(document)]

    def closing_lines(self, document: Mapping[str, Any]) -> list[str]:
        """See ``AuditKind``."""
        from orchestrator.report.tables import exposure_line

        line = exposure_line(document)
        return [line] if line else []

    def metrics(self, document: Mapping[str, Any], setting: str) -> dict[str, float]:
        """See ``AuditKind``."""
        from orchestrator.tracking_content import metrics

        return metrics(document, setting)

    def main_setting(self, document: Mapping[str, Any]) -> str:
        """See ``AuditKind``."""
        from orchestrator.report.reading import Run

        return Run(dict(document), scores={}).main_setting

    def refuse_gates(self, texts: Sequence[str], plan: Any) -> None:
        """See ``AuditKind``."""
        from orchestrator.gate import check_gates, parse_gate

        check_gates([parse_gate(text) for text in texts], plan)

    def failed_gates(self, texts: Sequence[str], document: Mapping[str, Any], plan: Any) -> list[str]:
        """See ``AuditKind``."""
        from orchestrator.gate import failures, parse_gate

        return failures([parse_gate(text) for text in texts], document["table"], plan)


def stored_scores(settings: Sequence[Setting], store: Store) -> list[tuple[str, pa.Table]]:
    """Return the scores of all settings, a table for each of their jobs."""
    from orchestrator.stages import SCORES
    from orchestrator.store import unpack_table

    return [
        (setting.name, unpack_table(store.get(job.stage, job.key).read(SCORES)))
        for setting in settings
        for job in setting.jobs.score_units
    ]


def joined_scores(settings: Sequence[Setting], store: Store) -> pa.Table:
    """Return the scores of all settings as one table, the setting in front; what a setting does not have is null."""
    import pyarrow as pa

    tables = [
        table.add_column(0, "setting", pa.array([name] * len(table), pa.string()))
        for name, table in stored_scores(settings, store)
    ]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def audit_kind(name: str) -> AuditKind:
    """Return the kind of audits called ``name`` (``audit.kind``); raises ``BadInput`` for others."""
    from audits.errors import BadInput, did_you_mean
    from orchestrator.disclosure.kind import DisclosureKind
    from orchestrator.membership.kind import MembershipKind
    from orchestrator.plan import KINDS

    if name not in KINDS:
        raise BadInput(f"no audit {name!r}{did_you_mean(name, KINDS)}; audits: {', '.join(KINDS)}")
    kinds: dict[str, type[AuditKind]] = {"apollo": ApolloKind, "tmia": MembershipKind, "gnq": DisclosureKind}
    return kinds[name]()
