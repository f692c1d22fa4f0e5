"""What the list of runs in MLflow's page says before a run is opened, and the charts that it opens with."""

import json

import pytest

from orchestrator.engine.run.tracking import log_result
from orchestrator.engine.run.tracking_headline import headline_of
from orchestrator.engine.run.tracking_view import MOST_VIEWS, PRIMARY, SAVED, View, arrange, views_of
from orchestrator.kinds import kind_named
from tests.cases.apollo_result import settings, write_run

APOLLO = kind_named("apollo")


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    from mlflow import MlflowClient

    out = tmp_path_factory.mktemp("run")
    chosen = [entry for entry in settings(sweep=True) if entry["setting"] in ("base", "beta=16")]
    result = write_run(out, sweep=True, chosen=chosen, targets=2, points=100)
    told = log_result(APOLLO, result, out, f"sqlite:///{out}/mlflow.db", "orch")
    return MlflowClient(tracking_uri=told["uri"]), told, result


def approximate(result, setting):
    """Return the rows that the worst line is sought among."""
    controls = ("identity", "retrain")
    rows = [row for row in result["table"] if row["setting"] == setting and row["unlearner"] not in controls]
    return [row for row in rows if row["access"] == "labels"]


@pytest.mark.long
def test_a_run_carries_the_numbers_of_its_worst_line_under_the_names_of_the_gate(logged):
    """In short: ``tests/orchestrator/test_readers_agree.py``, of what a tracker gets."""
    client, told, result = logged
    for setting, run in told["children"].items():
        rows = approximate(result, setting)
        found = client.get_run(run).data
        assert found.metrics["auc"] == pytest.approx(max(row["auc"] for row in rows))
        assert found.metrics["found_fpr"] == pytest.approx(max(row["found_fpr"] for row in rows))
        worst = max(rows, key=lambda row: row["auc"])
        assert found.tags["orch.worst"] == f"{worst['unlearner']}, {worst['attack']}"
        assert found.tags["orch.data"] == result["plan"]["data"]["name"]
        assert found.tags["orch.model"] == result["plan"]["model"]["name"]


def test_a_void_line_lends_no_true_positive_rate(logged):
    _, _, result = logged
    rows = [{**row, "void": True} for row in result["table"]]
    found = headline_of(APOLLO, {**result, "table": rows}, "base").numbers
    assert set(found) == {"auc", "found_fpr"}


def test_a_plan_of_controls_alone_has_no_worst_line(logged):
    _, _, result = logged
    plan = {**result["plan"], "unlearning": [{"method": "identity"}, {"method": "retrain"}]}
    assert headline_of(APOLLO, {**result, "plan": plan}, "base").numbers == {}


def test_what_is_not_set_is_no_parameter(logged):
    client, told, _ = logged
    assert "None" not in client.get_run(told["parent"]).data.params.values()
    assert client.get_run(told["children"]["beta=16"]).data.params["audit.search.beta"] == "16"


def test_the_run_describes_itself_by_the_last_lines_of_the_terminal(logged):
    client, told, result = logged
    note = client.get_run(told["parent"]).data.tags["mlflow.note.content"]
    assert note == "\n\n".join(APOLLO.open_page().closing_lines(result)) and "Verdict on base" in note


def test_the_views_show_what_was_varied_beside_what_was_found(logged):
    client, told, _ = logged
    parent = client.get_run(told["parent"])
    tags = client.get_experiment(parent.info.experiment_id).tags
    assert tags[PRIMARY] == "auc"
    key = told["page"].partition("viewStateShareKey=")[2]
    assert told["page"] == f"#/experiments/{parent.info.experiment_id}/runs?viewStateShareKey={key}"
    state = json.loads(json.loads(tags[SAVED + key])["state"])
    assert state["searchFilter"] == f"tags.`mlflow.parentRunId` = '{told['parent']}'"
    assert state["orderByKey"] == "metrics.`auc`"  # sorted by date, settings would be folded into their sweep
    assert "params.`audit.search.beta`" in state["selectedColumns"] and "metrics.`auc`" in state["selectedColumns"]
    kinds = [chart["type"] for chart in state["compareRunCharts"]]
    assert kinds == ["PARALLEL", "SCATTER", "BAR", "BAR", "BAR"]
    shown = {section["uuid"]: section["display"] for section in state["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} == {"orch-charts"}
    assert shown == {"orch-charts": True, "orch-rest": False}
    everything = json.loads(json.loads(tags[f"{SAVED}orch"])["state"])
    assert everything["searchFilter"] == "tags.`orch.level` = 'parent'"
    assert everything["selectedColumns"][:3] == ["metrics.`auc`", "tags.`orch.verdict`", "tags.`orch.worst`"]
    assert "tags.`orch.data`" in everything["selectedColumns"]


def test_the_list_of_audits_keeps_the_first_number_of_every_kind_that_was_logged(tmp_path):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.create_experiment("orch")
    one = {"name": "one", "plan": {}, "settings": [{"setting": "base", "overrides": {}}]}
    for metrics in (["auc", "tpr"], ["precision_low", "auc"], ["auc", "auc_low"]):
        arrange(client, experiment, views_of(one, "p", metrics))
    saved = json.loads(client.get_experiment(experiment).tags[f"{SAVED}orch"])
    columns = json.loads(saved["state"])["selectedColumns"]
    assert [name for name in columns if name.startswith("metrics")] == ["metrics.`auc`", "metrics.`precision_low`"]
    client.set_experiment_tag(experiment, f"{SAVED}orch", "written over")
    arrange(client, experiment, views_of(one, "p", ["auc"]))
    assert "Audits" in client.get_experiment(experiment).tags[f"{SAVED}orch"]


def compared(name, parent, varied):
    """Return the view of the settings of a run that vary some fields."""
    settings = [{"setting": str(value), "overrides": dict.fromkeys(varied, value)} for value in range(2)]
    return views_of({"name": name, "plan": {}, "settings": settings}, parent, ["auc", "tpr"])[-1]


SEARCH = {"beta": 4.0, "epsilon": 0.1, "steps": 5, "shadows": None}
PLAN = {"audit": {"search": SEARCH}, "split": {"shadows": 32}, "shadow_model": None}


def of_changes(*changes, stand_ins=APOLLO.stand_ins):
    """Return the view of settings that change fields of a search."""
    settings = [
        {"setting": str(number), "overrides": {f"audit.search.{name}": value for name, value in each.items()}}
        for number, each in enumerate(changes)
    ]
    return views_of({"name": "mine", "plan": PLAN, "settings": settings}, "p", ["auc"], stand_ins)[-1]


def test_fields_that_vary_one_at_a_time_are_axes_of_all_runs_and_span_no_contour():
    changes = {}, {"shadows": 4}, {"epsilon": 1.0}, {"steps": 1, "epsilon": 0.5}
    view = of_changes(*changes)
    assert [chart["type"] for chart in view.charts()] == ["PARALLEL", "BAR"]
    assert view.charts()[0]["selectedParams"] == [f"audit.search.{name}" for name in ("shadows", "epsilon", "steps")]
    unknown = of_changes(*changes, stand_ins=lambda plan: {})
    assert unknown.charts()[0]["selectedParams"] == ["audit.search.epsilon", "audit.search.steps"]
    assert "params.`audit.search.shadows`" in unknown.state()["selectedColumns"]


def test_a_grid_spans_a_contour_of_the_two_fields_that_vary_together():
    view = of_changes(
        {"shadows": 4}, *({"beta": beta, "epsilon": epsilon} for beta in (4.0, 1.0) for epsilon in (0.1, 1.0))
    )
    (contour,) = [chart for chart in view.charts() if chart["type"] == "CONTOUR"]
    assert (contour["xaxis"]["key"], contour["yaxis"]["key"]) == ("audit.search.beta", "audit.search.epsilon")


@pytest.mark.long
def test_every_child_has_what_any_setting_varies_with_the_value_that_takes_effect(tmp_path):
    """In short: ``test_fields_that_vary_one_at_a_time_are_axes_of_all_runs_and_span_no_contour``."""
    from mlflow import MlflowClient

    chosen = [entry for entry in settings(sweep=True) if entry["setting"] in ("base", "beta=16", "shadows=4")]
    result = write_run(tmp_path, sweep=True, chosen=chosen, targets=2, points=100)
    told = log_result(APOLLO, result, tmp_path, f"sqlite:///{tmp_path}/mlflow.db", "orch")
    client = MlflowClient(tracking_uri=told["uri"])
    found = {
        name: client.get_run(child).data.params["audit.search.shadows"] for name, child in told["children"].items()
    }
    every = str(result["plan"]["split"]["shadows"])
    assert found == {"base": every, "shadows=4": "4", "beta=16": every}


def test_a_run_of_one_setting_compares_nothing():
    (view,) = views_of({"name": "mine", "settings": [{"setting": "base", "overrides": {}}]}, "p", ["auc"])
    assert view.identity == "orch" and [chart["type"] for chart in view.charts()] == ["BAR"]


def test_two_varied_fields_span_a_contour():
    view = compared("mine", "0123456789abcdef", ["audit.search.beta", "audit.search.epsilon"])
    contour = view.charts()[1]
    assert contour["type"] == "CONTOUR"
    assert [contour[axis]["key"] for axis in ("xaxis", "yaxis", "zaxis")] == [*view.params, "auc"]


def test_old_views_of_sweeps_go_and_what_people_saved_stays(tmp_path):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.create_experiment("orch")
    theirs = {f"{SAVED}mine": "theirs", f"{SAVED}orch-unreadable": "{", PRIMARY: "their own"}
    for name, value in theirs.items():
        client.set_experiment_tag(experiment, name, value)
    for number in range(MOST_VIEWS + 3):
        arrange(client, experiment, [View("orch", "Audits", ["auc"]), compared("s", f"{number:012d}", ["a"])])
    tags = client.get_experiment(experiment).tags
    ours = [name for name in tags if name.startswith(f"{SAVED}orch-")]
    assert len(ours) == MOST_VIEWS
    assert f"{SAVED}orch-{MOST_VIEWS + 2:012d}" in ours and f"{SAVED}orch-unreadable" not in ours
    assert tags[f"{SAVED}mine"] == "theirs" and tags[PRIMARY] == "their own"


def test_every_view_fits_into_a_tag():
    many = [f"audit.search.field_{number}" for number in range(30)]
    view = compared("a sweep of thirty fields", "0" * 32, many)
    assert len(json.dumps({"state": json.dumps(view.state())})) < 15_000  # MLflow allows 20 000
