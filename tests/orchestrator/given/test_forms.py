"""Whatever ``target.weights`` names, the same model gives the same scores; what cannot be read is refused in a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from audits.errors import ServerSilent
from audits.models import make_model
from orchestrator.cli.main import main
from orchestrator.engine.data import data_of
from orchestrator.engine.plan.overrides import apply_overrides
from orchestrator.engine.run.attempts import Attempts
from orchestrator.kinds import KINDS, load_plan, open_design, plan_from
from tests.cases.endpoint import Fault, serving, status
from tests.cases.runs import audited, take_turns

POINTS = 120
MODEL: dict[str, Any] = {"name": "mlp", "settings": {"hidden": [8]}}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "toy", "tests.cases.given_kind:KIND")
        yield


@pytest.fixture(scope="module")
def net() -> nn.Module:
    return make_model("mlp", {"hidden": [8]}).build((1, 8, 8), 10, 3).eval()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(weights: str, served: dict[str, Any] | None = None, **values: Any) -> Any:
    """Return a plan with a target, whose store is a folder of the current one."""
    target = {"weights": weights, "members": "0:60", "non_members": f"60:{POINTS}", "served": served}
    raw = {"audit": {"kind": "toy"}, "data": {"name": "digits"}, "model": MODEL, "target": target}
    return plan_from(apply_overrides({**raw, "compute": {"workers": 0, "store": "store"}}, values.items()))


def scores_of(found: Any, out: str = "out") -> tuple[list[Any], dict[str, Any]]:
    """Return the scores of a run of a plan, and its result."""
    result = audited(found, Path(out))
    return result.scores.to_pylist(), result.document


@pytest.fixture(scope="module")
def reference(net: nn.Module, registered: None, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The scores of the state dict."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("reference"))
        torch.save(net.state_dict(), "weights.pt")
        return scores_of(plan("weights.pt"), "reference")[0]


def test_a_served_model_gives_the_scores_of_its_weights(net: nn.Module, reference: list[Any]) -> None:
    with serving(net) as server:
        found, document = scores_of(plan(server.url, {"gives": "logits", "identity": "one"}))
        assert found == reference
        assert document["served"]["served"] == server.served == 2 * POINTS  # each point, and each with noise
        assert document["served"]["asked"] == 4 * POINTS  # fit, loss and two questions about labels
        port = server.server_port
    again, later = scores_of(plan(f"http://127.0.0.1:{port + 1}", {"gives": "logits", "identity": "one"}), "again")
    assert again == reference and later["served"] == document["served"]  # everything is in the store
    folder = Path(document["served"]["record"])
    assert folder.is_relative_to(Path("store/answers").absolute())
    replayed, document = scores_of(plan(str(folder), {"gives": "logits"}, **{"compute.store": "other"}), "replayed")
    assert replayed == reference and document["served"]["served"] == 0


def test_a_killed_audit_asks_nothing_twice(net: nn.Module, reference: list[Any], here: Path) -> None:
    served = {"gives": "logits", "batch": 16, "patience": 0.0, "identity": "one"}
    with serving(net, faults=[None] * 5 + [status(503)]) as server:
        asked = plan(server.url, served)
        with pytest.raises(RuntimeError, match="what is recorded is kept"):
            audited(asked, Path("out"))
        assert server.served == 60 + 16  # four requests about members, one about others
        found, document = scores_of(asked)
        assert found == reference and document["served"]["served"] == server.served == 2 * POINTS


def test_two_processes_share_a_record(
    net: nn.Module, reference: list[Any], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    take_turns(monkeypatch)
    with serving(net) as server:
        found, document = scores_of(plan(server.url, {"gives": "logits"}, **{"compute.workers": 2}))
        assert found == reference and document["served"]["served"] == server.served == 2 * POINTS


SHOWN: dict[str, Callable[[torch.Tensor], Any]] = {
    "probabilities": lambda logits: logits.softmax(1).tolist(),
    "log_probabilities": lambda logits: logits.log_softmax(1).tolist(),
    "labels": lambda logits: [f"digit {label}" for label in logits.argmax(1)],
}


@pytest.mark.parametrize("gives", SHOWN)
def test_what_a_server_gives_is_read_as_it_is_told(gives: str, net: nn.Module, reference: list[Any]) -> None:
    names = [f"digit {label}" for label in range(10)] if gives == "labels" else None
    attacks = ["right"] if gives == "labels" else ["loss", "right"]
    with serving(net, SHOWN[gives]) as server:
        found, _ = scores_of(plan(server.url, {"gives": gives, "class_names": names}, **{"audit.attacks": attacks}))
    wanted = [row for row in reference if row["attack"] in attacks]
    assert [row["score"] for row in found] == pytest.approx([row["score"] for row in wanted], abs=1e-5)


def parquet(file: str, net: nn.Module, ids: Any, columns: list[str] | None) -> None:
    """Write the recorded answers of a model: logits in ``columns``, or labels."""
    with torch.no_grad():
        out = net(data_of("digits", None, None).tensors(ids, "cpu").all()[0])
    answers = {"label": out.argmax(1).numpy()} if columns is None else dict(zip(columns, out.T.numpy(), strict=True))
    pq.write_table(pa.table({"id": ids, **answers}), file)


def test_a_table_of_answers_gives_the_scores_of_the_weights(net: nn.Module, reference: list[Any]) -> None:
    ids = np.random.default_rng(0).permutation(POINTS)
    wanted = [row for row in reference if row["attack"] == "loss"]
    only = {"audit.attacks": ["loss"]}
    names = [f"digit {label}" for label in range(10)]
    for file, columns, more in (
        ("by-index.parquet", [str(label) for label in range(10)], {}),
        ("by-name.parquet", names, {"class_names": names}),
    ):
        parquet(file, net, ids, columns)
        found, document = scores_of(plan(file, {"gives": "logits", **more}, **only), file.partition(".")[0])
        assert found == wanted
        assert document["served"] == {"asked": 2 * POINTS, "served": 0, "record": file}


def test_what_a_table_of_answers_lacks_is_refused(net: nn.Module, here: Path) -> None:
    parquet("some.parquet", net, np.arange(POINTS - 1), [str(label) for label in range(10)])
    only = {"audit.attacks": ["loss"]}
    lacks = rf"has no answer to 1 of {POINTS} points .*first: point {POINTS - 1}.* adaptive attacks"
    with pytest.raises(ValueError, match=lacks):
        audited(plan("some.parquet", {"gives": "logits"}, **only), Path("out"))
    with pytest.raises(ValueError, match=r"right asks about inputs of its own making, of which some\.parquet has no"):
        plan("some.parquet", {"gives": "labels"}, **{"audit.attacks": ["right"]})
    parquet("labels.parquet", net, np.arange(POINTS), None)
    with pytest.raises(ValueError, match=r"loss reads posteriors, but .*labels\.parquet\) shows labels alone"):
        plan("labels.parquet", {"gives": "labels"}, **only)
    with pytest.raises(ValueError, match=r"labels\.parquet has no column 0 \(it has id, label\)"):
        audited(plan("labels.parquet", {"gives": "logits"}, **only), Path("out"))
    pq.write_table(pa.table({"id": [0, 0], "label": [1, 2]}), "twice.parquet")
    with pytest.raises(ValueError, match="has id 0 twice"):
        audited(plan("twice.parquet", {"gives": "logits"}, **only), Path("out"))


def test_torchscript_runs_with_permission_alone(
    net: nn.Module, reference: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script(net, "model.pt")
    file = Path("mine.yaml")
    file.write_text(plan("model.pt").to_yaml())
    assert main(["validate", str(file)]) == 2
    assert "model.pt is a program (TorchScript)" in (said := capsys.readouterr().err) and "--allow-code" in said
    assert main(["validate", str(file), "--allow-code"]) == 0
    assert main(["validate", str(file), "--set", "target.weights=model.pt"]) == 2  # the word of weights, of no program
    script(net, "model.ts")
    assert main(["validate", str(file), "--set", "target.weights=model.ts"]) == 0  # the user's own word
    other = Path("theirs.yaml")
    other.write_text(plan("model.ts").to_yaml())
    assert main(["validate", str(other), "--set", "tracking.experiment=model.ts"]) == 2  # a word about something else
    with monkeypatch.context() as patch:
        patch.setattr(torch.jit, "load", no_loading)
        assert main(["audit", "toy", str(file), "--out", "out"]) == 2
    assert scores_of(load_plan(str(file)))[0] == reference
    script(nn.Sequential(net, nn.Softmax(1)), "posteriors.ts")
    with pytest.raises(ValueError, match=r"posteriors\.ts gives probabilities .*target\.served\.gives: probabilities"):
        audited(plan("posteriors.ts"), Path("out"))
    found, _ = scores_of(plan("posteriors.ts", {"gives": "probabilities"}), "posteriors")
    assert [row["score"] for row in found] == pytest.approx([row["score"] for row in reference], abs=1e-5)


def no_loading(*_: Any, **__: Any) -> None:
    raise AssertionError("a program was loaded without permission")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def script(net: nn.Module, file: str) -> None:
    torch.jit.trace(net, torch.zeros(2, 1, 8, 8)).save(file)


FAULTS: dict[str, tuple[list[Fault | None], str]] = {
    "busy": ([status(429, Retry_After="0"), status(500)], ""),
    "garbage": ([status(200, b"<html>")], "no JSON"),
    "nan": ([status(200, b'{"predictions": [[NaN]]}')], "answers to 60 inputs"),
    "not found": ([status(404)], "nothing is served at this path"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_fails_ends_in_one_line_or_not_at_all(fault: str, net: nn.Module, reference: list[Any]) -> None:
    faults, says = FAULTS[fault]
    with serving(net, faults=faults) as server:
        asked = plan(server.url, {"gives": "logits"})
        if says:
            with pytest.raises(ValueError, match=says) as caught:
                audited(asked, Path("out"))
            assert "\n" not in str(caught.value)
        found, document = scores_of(asked)
        assert found == reference and document["served"]["served"] == server.served == 2 * POINTS


def test_a_silent_server_is_no_attack_that_failed() -> None:
    def ask() -> None:
        raise ServerSilent("no answer")

    with pytest.raises(ServerSilent):
        Attempts().of("loss", ask)


UNSERVED = {
    "target.served.gives=numbers": "allowed: 'labels'",
    "target.served=null": "target.served is missing",
    "target.served.gives=labels": "loss reads posteriors, but target.weights (http://127.0.0.1:9/) shows labels",
    "target.served.answers=predictions": "is no path to answers",
    "target.served.class_names=[a,b]": "class_names must be 10 different names",
    "target.weights=http://models.example": "unencrypted",
    "compute.store=s3://bucket/store": "target.served.record is missing",
    "compute.address=auto": "target.served.record is missing",
}
"""Change of a plan of a served model → what is said of it, without a question to the server."""


def test_plans_are_checked_and_priced_without_a_server(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("mine.yaml")
    file.write_text(plan("http://127.0.0.1:9/", {"gives": "logits"}).to_yaml())
    allowed = [str(file), "--allow-addresses", "127.0.0.1:9"]
    assert main(["validate", *allowed]) == 0
    assert main(["cost", *allowed]) == 0
    assert not Path("store").exists()
    capsys.readouterr()
    for change, says in UNSERVED.items():
        assert main(["validate", *allowed, "--set", change]) == 2, change
        assert says in capsys.readouterr().err


def test_keys_name_the_model_and_no_address_of_a_name(here: Path) -> None:
    def key(url: str, **served: Any) -> str:
        return open_design(plan(url, {"gives": "logits", **served})).given_job("weights").key  # type: ignore[attr-defined]

    secret = "http://user:geheim@127.0.0.1:9/x"
    assert (
        key("http://127.0.0.1:9/x") == key("http://127.0.0.1:9/x", patience=1.0, token_env="T", batch=3) == key(secret)
    )
    assert key("http://127.0.0.1:9/x") != key("http://127.0.0.1:8/x")
    assert key("http://127.0.0.1:9/x", identity="m") == key("http://127.0.0.1:8/y", identity="m")
    assert key("http://127.0.0.1:9/x") != key("http://127.0.0.1:9/x", class_names=list("abcdefghij"))
    assert "geheim" not in json.dumps(plan(secret, {"gives": "logits"}).resolved())


def test_one_table_says_who_was_a_member_and_who_was_not(here: Path) -> None:
    rows = [f"{point},{'train' if point % 3 else 'val'}" for point in reversed(range(POINTS))]
    Path("list.csv").write_text("\n".join(["id,split", *rows]))
    lists = {"target.members": "list.csv", "target.non_members": "list.csv"}
    found = open_design(plan("http://127.0.0.1:9/x", {"gives": "logits"}, **lists)).given_points  # type: ignore[attr-defined]
    assert found["members"].tolist() == [point for point in range(POINTS) if point % 3]
    assert found["non_members"].tolist() == list(range(0, POINTS, 3))


def test_keys_of_lists_know_the_names_that_they_are_read_among(here: Path) -> None:
    Path("list.txt").write_text("b\na\n")
    data, given = data_of("digits", None, None), plan("http://127.0.0.1:9/x", {"gives": "logits"})

    def key(members: str, *first: str) -> str:
        names = (*first, *map("p{}".format, range(len(data) - len(first)))) if first else None
        asked = given.changed({"target.members": members})
        return open_design(asked, data=replace(data, names=names)).given_job("points").key  # type: ignore[attr-defined]

    assert key("0:60") == key("0:60", "a", "b")
    assert len({key("list.txt"), key("list.txt", "a", "b"), key("list.txt", "b", "a")}) == 3
