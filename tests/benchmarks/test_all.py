"""The benchmarks run, compare equal work, and say what they measured; how fast anything is, no test asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import apollo_search, population, record, search_forms
from benchmarks.search_cases import DEFAULT_CASES, PAPER_CASES, make_problem, tiny
from tests.cases.imported import imported_with

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_RAY_AND_MLFLOW = """
import runpy, sys
sys.modules.update(dict.fromkeys(("ray", "mlflow", "pyarrow", "pydantic", "rich")))
runpy.run_module("benchmarks.apollo_search", run_name="__main__")
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)


QUICK_SEARCH = ("--quick", "--cases", "mlp", "--repeats", "2", "--json")


@pytest.mark.long
def test_search_benchmark_runs_where_there_is_only_torch(tmp_path):
    found = run("-c", WITHOUT_RAY_AND_MLFLOW, *QUICK_SEARCH, f"{tmp_path}/a.json")
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    assert document == json.loads((tmp_path / "a.json").read_text())
    assert all(document["cases"][0]["forms"][form]["peak_bytes"] > 0 for form in ("naive", "batched"))


def test_search_benchmark_is_imported_with_torch_alone():
    others = {"ray", "mlflow", "pyarrow", "pydantic", "rich"}
    assert not others & imported_with(Path(apollo_search.__file__)).keys()


def test_search_benchmark_prints_its_record(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(apollo_search, "peak_apart", search_forms.peak_bytes)  # here, and in no process of its own
    apollo_search.main([*QUICK_SEARCH, f"{tmp_path}/a.json"])
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "a.json").read_text())
    assert document["schema"] == "orch.benchmark/1"
    assert document["command"] == "python -m benchmarks.apollo_search --cases mlp --quick --repeats 2"
    (case,) = document["cases"]
    assert case["largest_difference"] < 1e-8
    for form in ("naive", "batched"):
        assert all(case["forms"][form][name] > 0 for name in ("per_cpu_second", "per_second"))
    assert case["ratio"]["cpu"]["least"] <= case["ratio"]["cpu"]["median"] <= case["ratio"]["cpu"]["most"]


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, marks=[pytest.mark.long] * (case.model == "resnet18")) for case in DEFAULT_CASES),
        *(pytest.param(case, marks=pytest.mark.long) for case in PAPER_CASES),  # as small, nearly one
    ],
    ids=lambda case: f"{case.name}-m{case.shadows}",
)
def test_both_forms_of_the_search_give_the_same(case):
    assert search_forms.largest_difference(case, "cpu") < 1e-8


def test_forms_that_differ_are_not_timed(monkeypatch):
    same = search_forms.naive

    def shifted(problem):
        inputs, confidence = same(problem)
        return inputs + 1e-6, confidence

    monkeypatch.setattr(search_forms, "naive", shifted)
    with pytest.raises(SystemExit, match="mlp: the two forms differ by 1"):
        apollo_search.measure(tiny(DEFAULT_CASES[0]), "cpu", threads=1, repeats=1)


def test_only_the_naive_form_builds_weight_gradients():
    problem = make_problem(tiny(DEFAULT_CASES[0]), "cpu")
    weights = [weight for model in problem.models() for weight in model.parameters()]
    search_forms.batched(problem)
    assert all(weight.grad is None for weight in weights)
    search_forms.naive(problem)
    assert all(weight.grad is not None for weight in weights)
    search_forms.forget_gradients(problem)
    assert all(weight.grad is None for weight in weights)


def test_the_twelve_layer_network_has_twelve_linear_layers():
    (case,) = (case for case in DEFAULT_CASES if case.name == "mlp-12-layers")
    (model, *_) = make_problem(tiny(case), "cpu").models()
    assert sum(type(layer).__name__ == "Linear" for layer in model.modules()) == 12


GROWS = """
from benchmarks.resident import resident_bytes
before = resident_bytes(reset=True)
held = bytearray(b"x") * 2**29
print(resident_bytes() - before)
"""


@pytest.mark.long
def test_peak_memory_grows_by_what_a_form_holds():
    # In a process of its own, as in the benchmark: where the peak cannot be reset, it counts from the process's start.
    grown = run("-c", GROWS)
    assert grown.returncode == 0, grown.stderr
    assert 2**29 * 0.8 < int(grown.stdout) < 2**29 * 1.2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--cases", "vgg"], "--cases 'vgg': allowed are 'mlp'"),
        (["--repeats", "0"], "--repeats 0: give 1 or more"),
        (["--device", "cuda:99"], "--device cuda:99"),
    ],
)
def test_search_benchmark_refuses_what_it_cannot_do(arguments, told, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        apollo_search.main(arguments)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--sizes", "8", "8"], "--sizes 8 8"),
        pytest.param(["--sizes", "1", "100000"], "--sizes 1 100000", marks=pytest.mark.long),
        pytest.param(["--alone", "-1", "2"], "--alone -1 2", marks=pytest.mark.long),
        pytest.param(["--workers", "0"], "must be 1 or more", marks=pytest.mark.long),
        (["--set", "recipe.epoch=3"], "recipe.epoch"),
    ],
)
def test_population_benchmark_refuses_what_it_cannot_do(arguments, told, capsys):
    with pytest.raises(SystemExit) as stopped:
        population.main(arguments)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_fixed_cost_and_rate_are_those_of_the_line_through_the_medians():
    found = population.entry("population, 2 workers", 2, {10: [12.0, 13.0, 14.0], 30: [22.0, 23.0, 34.0]}, [0.9], 200)
    assert found["seconds_per_model"] == 0.5
    assert found["fixed_seconds"] == 8.0
    assert found["models_per_minute"] == 120
    assert found["whole_plan_seconds"] == 108.0
    assert (found["slowest"], found["fastest"]) == (60, 120)


def test_noise_that_hides_the_rate_is_shown_as_a_dash():
    found = population.entry("population, 2 workers", 2, {12: [46.3, 49.5], 48: [78.4, 42.8]}, [0.9], 200)
    assert found["models_per_minute"] is None
    assert population.shown(found["models_per_minute"]) == "–"


def test_population_pays_from_the_model_at_which_the_lines_cross():
    alone = population.entry("in process", 0, {1: [1.0], 11: [11.0]}, [1.0], 200)
    double = population.entry("population, 2 workers", 2, {2: [11.0], 12: [16.0]}, [1.0], 200)
    slower = population.entry("run per model", 1, {1: [5.0], 2: [10.0]}, [1.0], 200)
    assert "From 20 models on" in population.pays(double, alone)
    assert population.pays(slower, alone) == population.pays(alone, alone) == ""
    uncertain = population.entry("population, 2 workers", 2, {2: [11.0, 11.0], 12: [16.0, 31.0]}, [1.0], 200)
    assert uncertain["models_per_minute"] > alone["models_per_minute"] / 2
    assert population.pays(uncertain, alone) == ""


@pytest.mark.long
def test_forms_that_train_other_models_are_not_reported(monkeypatch, capsys):
    answers = iter([b"warm", b"a", b"a", b"b"])
    monkeypatch.setattr(population, "timed", lambda *_: (1.0, {"key": (next(answers), 0.1)}))
    with pytest.raises(SystemExit, match="population, 1 worker: the weights of model key differ"):
        population.main([])


@pytest.mark.long
@pytest.mark.cluster
def test_population_benchmark_prints_its_record():
    found = run(
        *("-m", "benchmarks.population", "--quick", "--workers", "1"),
        *("--sizes", "1", "2", "--alone", "0", "1", "--repeats", "1"),
    )
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    assert document["section"] == "population cpu"
    assert [form["name"] for form in document["forms"]] == ["in process", "population, 1 worker", "run per model"]
    assert all(seconds > 0 for form in document["forms"] for times in form["seconds"].values() for seconds in times)


def test_tables_stand_between_their_markers():
    text = "a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n<!-- begin: y -->\n<!-- end: y -->\n"
    assert record.replace_section(text, "x", "new") == "a\nnew\nb\n<!-- begin: y -->\n<!-- end: y -->\n"


@pytest.mark.parametrize("text", ["", "<!-- begin: x -->", "<!-- end: x --><!-- begin: x -->"])
def test_a_file_without_the_markers_is_left_alone(text):
    with pytest.raises(SystemExit, match="begin: x"):
        record.replace_section(text, "x", "new")


def test_the_docs_have_a_place_for_every_section_and_numbers_of_full_runs_only():
    text = (ROOT / "docs" / "results" / "benchmarks.md").read_text()
    for section in ("apollo_search cpu", "apollo_search cuda paper-size", "population cpu"):
        record.replace_section(text, section, "")
    assert all("--quick" not in line for line in text.splitlines() if "load average" in line)


@pytest.mark.parametrize(("value", "text"), [(0.012345, "0.0123"), (12.345, "12.3"), (123.4, "123"), (12345, "12 300")])
def test_numbers_have_three_digits(value, text):
    assert record.number(value) == text
