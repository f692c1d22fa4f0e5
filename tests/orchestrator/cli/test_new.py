"""``orch new``: every plan that it writes is valid, by options and by answers; no file is written over."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

import orchestrator.cli.new
from audits.models import make_model
from orchestrator.cli.main import main
from orchestrator.cli.new import QUESTIONS
from orchestrator.cli.new_plans import SIZES, TEXTS, Parts, text_of
from orchestrator.kinds import load_plan
from tests.cases.families import family, firsts
from tests.cases.terminals import ORCH, opened, shown_here

CNN = {"channels": [4], "hidden": 8}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "size"), [*product(TEXTS, SIZES)])
def test_every_plan_is_of_what_was_asked_for(kind: str, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "my.yaml", "--kind", kind, "--size", size, "--model", "cnn"]) == 0
    assert "too few points" not in capsys.readouterr().out
    plan = load_plan("my.yaml")
    assert (plan.kind, plan.data.name, plan.resolved()["model"]["name"]) == (kind, "fashion14", "cnn")
    assert " # " in Path("my.yaml").read_text()


@family("kind, size", product(TEXTS, SIZES), default=firsts([SIZES] * len(TEXTS)))
def test_every_plan_is_valid(kind: str, size: str) -> None:
    """Of larger plans the jobs take seconds to lay out; that their points are there ``orch new`` sees to."""
    assert main(["new", "my.yaml", "--kind", kind, "--size", size, "--model", "cnn"]) == 0
    assert main(["validate", "my.yaml"]) == 0


@pytest.mark.parametrize("kind", TEXTS)
def test_small_data_get_the_largest_plan_that_fits(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "my.yaml", "--kind", kind, "--size", "hours", "--data", "digits?size=8"]) == 0
    assert "digits?size=8 has too few points for an audit of hours: the plan is that of" in capsys.readouterr().out
    assert main(["validate", "my.yaml"]) == 0
    assert load_plan("my.yaml").data.name == "digits?size=8"


def rows(number: int) -> None:
    """Write a table of that many rows."""
    drawn = np.random.default_rng(1)
    columns = {"a": drawn.normal(size=number), "b": drawn.normal(size=number), "label": np.arange(number) % 2}
    pq.write_table(pa.table(columns), "rows.parquet")


@family("kind, size", product(("tmia", "gnq", "mia"), ("seconds", "hours")), default=(0, 3, 4))
def test_smaller_data_get_a_plan_that_is_cut_to_them(kind: str, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows(300)
    assert main(["new", "my.yaml", "--kind", kind, "--size", size, "--data", "table:rows.parquet"]) == 0
    said = capsys.readouterr().out
    assert "too few points" in said and "seconds" in said and "cut" in said
    assert main(["validate", "my.yaml"]) == 0


@pytest.mark.parametrize("kind", ["mia", "gnq"])
def test_a_model_of_ones_own_is_the_target(kind: str) -> None:
    torch.save(make_model("mlp", {}).build((1, 14, 14), 10, seed=0).state_dict(), "weights.pt")
    words = ["--kind", kind, "--size", "seconds", "--target", "weights.pt", "--members", "0:5000"]
    assert main(["new", "my.yaml", *words]) == 0
    assert main(["validate", "my.yaml"]) == 0
    target = load_plan("my.yaml").resolved()["target"]
    assert (target["weights"], target["members"]) == ("weights.pt", "0:5000")


@family("kind", ["mia", "gnq"], default=(0,))
def test_a_folder_of_save_pretrained_is_the_target(kind: str) -> None:
    Path("model").mkdir()
    save_file(make_model("mlp", {}).build((1, 14, 14), 10, seed=0).state_dict(), "model/model.safetensors")
    words = ["--kind", kind, "--size", "seconds", "--target", "model", "--members", "0:5000"]
    assert main(["new", "my.yaml", *words]) == 0
    assert main(["validate", "my.yaml"]) == 0
    assert load_plan("my.yaml").resolved()["target"]["weights"] == "model"


@family("part", ["#ema", "#."], default=(0,))
def test_one_of_two_sets_of_weights_is_the_target(part: str) -> None:
    state = make_model("mlp", {}).build((1, 14, 14), 10, seed=0).state_dict()
    torch.save({**state, **{f"ema.{name}": value for name, value in state.items()}}, "two.pt")
    words = ["--kind", "mia", "--size", "seconds", "--target", f"two.pt{part}", "--members", "0:5000"]
    assert main(["new", "my.yaml", *words]) == 0
    assert main(["validate", "my.yaml"]) == 0


def test_a_refusal_that_is_not_about_size_is_looked_for_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[Parts] = []

    def text(kind: str, size: str, parts: Parts, share: float) -> str:
        tried.append(parts)
        return text_of(kind, size, parts, share)

    monkeypatch.setattr(orchestrator.cli.new, "text_of", text)
    Path("w.pt").write_bytes(b"no weights")
    words = ["--kind", "mia", "--size", "hours", "--target", "w.pt", "--members", "0:5000"]
    assert main(["new", "my.yaml", *words]) == 2
    assert "w.pt" in capsys.readouterr().err
    assert [parts.target for parts in tried if parts.target] == ["w.pt"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--kind is missing; give one of apollo, tmia, gnq, mia"),
        (["--kind", "mai"], "'mai' is not known (did you mean 'mia'?); allowed: apollo, tmia, gnq, mia"),
        (["--kind", "mia", "--size", "minute"], "did you mean 'minutes'?"),
        (["--kind", "mia", "--data", "fashion15"], "unknown data set 'fashion15' (did you mean 'fashion14'?)"),
        (["--kind", "mia", "--model", "mpl"], "(did you mean 'mlp'?)"),
        (["--kind", "mia", "--model", "bert"], "bert"),
        (["--kind", "apollo", "--data", "toy2d"], "need 1300 points, but toy2d has 500); give more points"),
        (
            ["--kind", "mia", "--data", "table:rows.parquet"],
            "4 pools of 2 × 16 points and 30 test points are 158, but table:rows.parquet has 20",
        ),
        (["--kind", "mia", "--target", "w.pt"], "--target and --members go together"),
        (["--kind", "apollo", "--target", "w.pt", "--members", "all"], "see docs/how-to/given-models.md"),
        (["--kind", "mia", "--target", "w.pt", "--members", "0:500"], "w.pt"),
        (["--kind", "mia", "--settings", "[32]"], "model.settings is '[32]'; give a YAML mapping, e.g. {hidden: [32]}"),
        (["--kind", "mia", "--settings", "{hiden: 3}"], "hiden"),
        (["--kind", "mia", "--target", __file__, "--members", "evn"], "members is 'evn'; allowed: all, even, odd, "),
        (["--kind", "mia", "--target", __file__, "--members", "ids.csv"], "ids.csv"),
    ],
)
def test_what_makes_no_plan_is_one_line_and_no_file(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows(20)
    assert main(["new", "my.yaml", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not Path("my.yaml").exists()


def test_no_file_is_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.yaml").write_text("mine")
    assert main(["new", "my.yaml", "--kind", "mia"]) == 2
    assert capsys.readouterr().err == "orch: my.yaml is there already; give another name\n"
    assert Path("my.yaml").read_text() == "mine"


ASKED = (
    ("Kind of audit", "mai"),
    (r"did you mean 'mia'[\s\S]*Kind of audit", "mia"),
    ("model of yours", "nowhere.pt"),
    (r"nowhere.pt is not here[\s\S]*model of yours", ""),
    ("Data set", "digit"),
    (r"did you mean 'digits'[\s\S]*Data set", "digits"),
    ("Model", "mpl"),
    (r"did you mean 'mlp'[\s\S]*Model", "bert"),
    (r"bert[\s\S]*token ids[\s\S]*Model \[", ""),
    ("How long", "seconds"),
    ("File", "asked.yaml"),
)
"""What a person is asked, and answers."""


@pytest.mark.parametrize(
    "alone", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in this process", "in a process of its own"]
)
def test_a_person_at_a_terminal_is_asked_and_may_err(alone: bool, tmp_path: Path) -> None:
    if alone:
        screen = opened([*ORCH, "new"], tmp_path)
        for question, answer in ASKED:
            screen.read(question)
            screen.type(f"{answer}\n")
        assert screen.end() == 0
        text = screen.text
    else:
        shown = shown_here(["new"], "".join(f"{answer}\n" for _, answer in ASKED))
        assert shown.code == 0
        text = shown.text
    assert re.search(r"[\s\S]*".join(question for question, _ in ASKED), text)
    assert all(question in text for question in QUESTIONS.values())
    assert main(["validate", "asked.yaml"]) == 0
    assert load_plan("asked.yaml").kind == "mia"


@pytest.mark.long
def test_a_person_with_a_model_is_asked_again_for_what_does_not_fit_it(tmp_path: Path) -> None:
    """In short: the test above."""
    torch.save(make_model("cnn", CNN).build((1, 14, 14), 10, seed=0).state_dict(), tmp_path / "weights.pt")
    (tmp_path / "broken.pt").write_bytes(b"no weights")
    screen = opened([*ORCH, "new", "--kind", "mia", "--size", "seconds"], tmp_path)
    for question, answer in (
        ("model of yours", "broken.pt"),
        ("Data set", ""),
        ("Points that it was trained on", ""),
        (r"members[\s\S]*Points that it was trained on", "ids.txt"),
        (r"ids.txt[\s\S]*Points that it was trained on", "0:50000000"),
        (r"allowed: within 0:[\s\S]*Points that it was trained on", "0:5000"),
        ("Model", ""),
        ("Its settings", ""),
        (r"broken.pt cannot be read[\s\S]*model of yours", "weights.pt"),
        ("Model", ""),
        ("Its settings", ""),
        (r"does not fit the architecture[\s\S]*Model", "cnn"),
        ("Its settings", "[8]"),
        (r"give a YAML mapping[\s\S]*Model", "cnn"),
        ("Its settings", "{channels: [4], hidden: 8}"),
        ("File", "asked.yaml"),
    ):
        screen.read(question)
        screen.type(f"{answer}\n")
    assert screen.end() == 0
    assert main(["validate", "asked.yaml"]) == 0
    found = load_plan("asked.yaml").resolved()
    assert (found["target"]["weights"], found["model"]["name"]) == ("weights.pt", "cnn")
    assert found["model"]["settings"].items() >= CNN.items()


def test_settings_of_the_model_are_those_of_the_plan() -> None:
    words = ["--kind", "mia", "--size", "seconds", "--model", "mlp", "--settings", "{hidden: [32]}"]
    assert main(["new", "my.yaml", *words]) == 0
    assert main(["validate", "my.yaml"]) == 0
    assert load_plan("my.yaml").resolved()["model"]["settings"]["hidden"] == [32]
