"""Views of an experiment in MLflow's page: which columns its list of runs shows, and which charts.

MLflow's page shows neither metrics nor tags in the list of runs, and a chart for each metric by name, until somebody
chooses. A saved view is a tag of the experiment that its page (3.x) reads; one that it cannot read is not offered, and
nothing else depends on it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from orchestrator.engine.kind import StandIns, nothing_stands_in
from orchestrator.engine.run.tracking_names import effective, flatten

if TYPE_CHECKING:
    from mlflow import MlflowClient

SAVED = "mlflow.sharedViewState."
ALL_RUNS = "orch"
MOST_VIEWS = 20
"""Views of sweeps that an experiment keeps, the latest; its page allows 40 in all."""
PRIMARY = "mlflow.experiment.primaryMetric.name"
TRAINING = {"mlflow.experimentKind": "custom_model_development"}
"""Without it MLflow guesses what an experiment is about, and may open a page on language models."""
CHARTS, REST = "orch-charts", "orch-rest"
"""Sections of charts: those of the view, and MLflow's one a metric, which stays folded."""
CHOSEN = {"deleted": False, "isGenerated": False}
BARS = 3
METRIC_COLUMN = re.compile(r"metrics\.`(.+)`")


@dataclass(frozen=True)
class View:
    """One view: ``params``, ``metrics`` and ``tags`` are columns, metrics axes too; ``parent``: of its children.

    ``axes``: those of ``params`` that every run has, ``plane``: two of them that vary together.
    """

    identity: str
    title: str
    metrics: Sequence[str]
    params: Sequence[str] = ()
    tags: Sequence[str] = ()
    parent: str = ""
    axes: Sequence[str] = ()
    plane: tuple[str, str] | None = None

    @property
    def link(self) -> str:
        """The end of the address of the list of runs that opens the view."""
        return f"?viewStateShareKey={self.identity}"

    def charts(self) -> list[dict[str, Any]]:
        """Return parallel coordinates of what was varied, a plot of one or two fields, and bars of the first metrics.

        MLflow drops a run from a chart that has an axis which the run lacks. A contour needs two fields that vary
        together. A view of runs that vary nothing has bars only.
        """
        found: list[dict[str, Any]] = []
        up = {"type": "METRIC", "key": self.metrics[0]}
        if self.axes:
            axes = {"selectedParams": list(self.axes), "selectedMetrics": list(self.metrics[:BARS])}
            found.append({"type": "PARALLEL", "showAllRuns": True, **axes})
        if len(self.axes) == 1:
            found.append({"type": "SCATTER", "xaxis": {"type": "PARAM", "key": self.axes[0]}, "yaxis": up})
        elif self.plane:
            across, second = ({"type": "PARAM", "key": name} for name in self.plane)
            found.append({"type": "CONTOUR", "xaxis": across, "yaxis": second, "zaxis": up})
        found += [{"type": "BAR", "metricKey": name, "displayName": name} for name in self.metrics[:BARS]]
        shared = {"metricSectionId": CHARTS, "runsCountToCompare": 100, **CHOSEN}
        return [{"uuid": f"{CHARTS}-{place}", **shared, **chart} for place, chart in enumerate(found)]

    def state(self) -> dict[str, Any]:
        """Return the view as MLflow's page keeps it."""
        columns = {"params": self.params, "metrics": self.metrics, "tags": self.tags}
        sections = [(CHARTS, "Compared", True), (REST, "Model metrics", False)]
        only = f"tags.`mlflow.parentRunId` = '{self.parent}'" if self.parent else "tags.`orch.level` = 'parent'"
        return {
            "searchFilter": only,
            # sorted by a date, runs are nested and folded
            "orderByKey": f"metrics.`{self.metrics[0]}`" if self.parent else "attributes.start_time",
            "orderByAsc": False,
            "selectedColumns": [f"{group}.`{name}`" for group, names in columns.items() for name in names],
            "runsHiddenMode": "SHOWALL",
            "isAccordionReordered": True,
            "compareRunCharts": self.charts(),
            "compareRunSections": [
                {"uuid": key, "name": title, "display": shown, "isReordered": True, **CHOSEN}
                for key, title, shown in sections
            ],
        }


def views_of(
    result: Mapping[str, Any], parent: str, metrics: Sequence[str], stand_ins: StandIns = nothing_stands_in
) -> list[View]:
    """Return the view of all audits of an experiment, and that of the settings of this run where it has several.

    That of all has the first number alone, so that the verdict stands beside it on a screen of usual width.
    """
    tags = ("orch.verdict", "orch.worst", "orch.kind", "orch.data", "orch.model", "orch.gate")
    audits = View(ALL_RUNS, "Audits", metrics[:1], tags=tags)
    varied = dict.fromkeys(path for entry in result["settings"] for path in flatten(entry["overrides"]))
    if len(result["settings"]) < 2 or not varied:
        return [audits]
    title = f"{result['name']}: settings compared"
    plan = flatten(result["plan"])
    runs = [effective({**plan, **flatten(entry["overrides"])}, stand_ins) for entry in result["settings"]]
    axes = [path for path in varied if all(path in run for run in runs)]
    plane = together(effective(plan, stand_ins), runs, axes)
    view = View(f"{ALL_RUNS}-{parent[:12]}", title, metrics, list(varied), parent=parent, axes=axes, plane=plane)
    return [audits, view]


def together(plan: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two of ``axes`` that vary together; None where all vary one at a time, or nearly so.

    Two do if half of their pairs of values have both unlike the plan, or if there are more pairs than without a grid.
    """
    for first, second in combinations(axes, 2):
        pairs = {(str(run[first]), str(run[second])) for run in runs}
        ones, others = ({pair[place] for pair in pairs} for place in (0, 1))
        if min(len(ones), len(others)) < 2:
            continue
        apart = [pair for pair in pairs if pair[0] != str(plan.get(first)) and pair[1] != str(plan.get(second))]
        if 2 * len(apart) >= len(pairs) or len(pairs) >= len(ones) + len(others):
            return first, second
    return None


def arrange(client: MlflowClient, experiment: str, views: Sequence[View]) -> None:
    """Save ``views``; the oldest of sweeps go where there are too many, and what people saved stays."""
    tags: Mapping[str, str] = client.get_experiment(experiment).tags
    for name, value in {**TRAINING, PRIMARY: views[0].metrics[0]}.items():
        if name not in tags:
            client.set_experiment_tag(experiment, name, value)
    now = int(time.time() * 1000)
    for view in views:
        view = view if view.parent else with_former(view, tags.get(f"{SAVED}{view.identity}"))
        made = {"name": view.title, "createdAt": now, "updatedAt": now, "state": json.dumps(view.state())}
        client.set_experiment_tag(experiment, f"{SAVED}{view.identity}", json.dumps(made))
    for name in outdated(tags, [f"{SAVED}{view.identity}" for view in views if view.parent]):
        client.delete_experiment_tag(experiment, name)


def with_former(view: View, saved: str | None) -> View:
    """Return a view with the numbers that it had before, first: audits of another kind may have no other."""
    try:
        columns = json.loads(json.loads(saved or "")["state"])["selectedColumns"]
        former = [found[1] for column in columns if (found := METRIC_COLUMN.fullmatch(column))]
    except (ValueError, LookupError, TypeError):  # none, or one that somebody has written over
        former = []
    return replace(view, metrics=tuple(dict.fromkeys((*former, *view.metrics))))


def outdated(tags: Mapping[str, str], new: Sequence[str]) -> list[str]:
    """Return the tags of our views of sweeps that have to go before the ``new`` ones are too many, oldest first."""
    ours = {name: made_at(value) for name, value in tags.items() if name.startswith(f"{SAVED}{ALL_RUNS}-")}
    kept = sorted((name for name in ours if name not in new), key=lambda name: ours[name])
    return kept[: max(len(kept) + len(new) - MOST_VIEWS, 0)]


def made_at(value: str) -> int:
    """Return when a view was saved; 0 for one that cannot be read."""
    try:
        return int(json.loads(value)["createdAt"])
    except (ValueError, KeyError, TypeError):
        return 0
