"""Keys of artefacts: whatever decides a result changes the key, nothing else does."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.training.recipe import Recipe
from orchestrator import codeversion
from orchestrator.codeversion import SOURCES, code_files, source_root
from orchestrator.keyed_jobs import engines
from orchestrator.plan import load_plan
from orchestrator.schedule import open_scheduler
from orchestrator.store import (
    ABSENT,
    artefact_key,
    code_version,
    differences,
    digest,
    pack_arrays,
    pack_table,
    unpack_arrays,
    unpack_table,
)

RECIPE = asdict(Recipe())
TRAIN: dict[str, Any] = {
    "code": "0011223344556677",
    "data": "fingerprint",
    "points": digest(np.arange(500)),
    "model": {"name": "mlp", "settings": {"hidden": [128, 128]}},
    "recipe": RECIPE,
    "privacy": {"noise": 1.1, "clip_norm": 1.0, "delta": 1e-5},
    "seed": 3,
}
UNLEARN: dict[str, Any] = {
    "model": artefact_key("train", TRAIN),
    "forget": digest(np.arange(50)),
    "method": {"method": "gradient_ascent", "learning_rate": 0.04, "epochs": 10, "clip_norm": 0.1},
    "seed": 4,
}


def leaves(document: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in document.items():
        found += leaves(value, (*path, name)) if isinstance(value, Mapping) else [(*path, name)]
    return found


def changed(document: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    name, *rest = path
    value = document[name]
    if rest:
        return {**document, name: changed(value, tuple(rest))}
    if isinstance(value, bool) or value is None:
        return {**document, name: not value}
    if isinstance(value, list):
        return {**document, name: [*value, 1]}
    return {**document, name: value + ("x" if isinstance(value, str) else 1)}


@pytest.mark.parametrize(
    ("stage", "document", "path"),
    [("train", TRAIN, path) for path in leaves(TRAIN)] + [("unlearn", UNLEARN, path) for path in leaves(UNLEARN)],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_every_setting_is_in_the_key(stage: str, document: dict[str, Any], path: tuple[str, ...]) -> None:
    other = changed(document, path)
    assert artefact_key(stage, other) != artefact_key(stage, document)
    assert [row[0] for row in differences(document, other)] == [".".join(path)]


def test_a_model_trained_with_other_epochs_has_another_key_and_so_has_what_is_made_of_it() -> None:
    longer = TRAIN | {"recipe": asdict(replace(Recipe(), epochs=61))}
    assert artefact_key("train", longer) != artefact_key("train", TRAIN)
    made_of_it = UNLEARN | {"model": artefact_key("train", longer)}
    assert artefact_key("unlearn", made_of_it) != artefact_key("unlearn", UNLEARN)


def test_a_private_recipe_is_not_taken_for_a_plain_one() -> None:
    plain = {name: value for name, value in TRAIN.items() if name != "privacy"}
    assert artefact_key("train", plain) != artefact_key("train", TRAIN)
    assert ("privacy", ABSENT, TRAIN["privacy"]) in differences(plain, TRAIN)


def test_two_stages_never_share_a_key() -> None:
    assert artefact_key("search", TRAIN) != artefact_key("score", TRAIN)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@settings(deadline=None)
@given(documents, documents)
def test_keys_are_equal_exactly_when_no_field_differs(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert (artefact_key("train", a) == artefact_key("train", b)) == (differences(a, b) == [])


@settings(deadline=None)
@given(documents)
def test_the_order_of_fields_and_the_types_of_numbers_do_not_change_a_key(document: dict[str, Any]) -> None:
    def rewritten(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: rewritten(value[name]) for name in reversed(value)}
        if isinstance(value, list):
            return tuple(rewritten(item) for item in value)
        return np.float64(value) if isinstance(value, int) and not isinstance(value, bool) else value

    assert artefact_key("train", rewritten(document)) == artefact_key("train", document)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, r"document\.recipe\.rate is nan"),
        (b"bytes", TypeError, r"document\.recipe\.rate is a bytes"),
        (Path("x"), TypeError, "JSON"),
        ({1: 2}, TypeError, "names of fields are strings"),
    ],
)
def test_values_without_one_spelling_are_refused(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        artefact_key("train", {"recipe": {"rate": value}})


def test_differences_name_the_field_and_both_values() -> None:
    a = {"recipe": {"epochs": 3, "layers": [1, {"width": 2}]}, "seed": 1, "points": [1, 2]}
    b = {"recipe": {"epochs": 4, "layers": [1, {"width": 5}]}, "private": True, "points": [1, 2, 3], "seed": 1}
    assert differences(a, b) == [
        ("points", [1, 2], [1, 2, 3]),
        ("private", ABSENT, True),
        ("recipe.epochs", 3, 4),
        ("recipe.layers[1].width", 2, 5),
    ]


MLP, SCRUB, LIRA = "audits.models.mlp", "audits.unlearning.scrub", "audits.attacks.lira"
WALK, OFFLINE = "audits.evidence.adversarial", "audits.evidence.offline"
COMPONENTS = {"unlearn": (MLP, SCRUB), "trace": (MLP, OFFLINE), "search": (MLP, WALK), "score": (MLP, LIRA)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the source whose files may be changed."""
    for package in ("audits", "orchestrator/stages", "orchestrator/membership", "orchestrator/disclosure"):
        leave = shutil.ignore_patterns("__pycache__", "*.parquet")
        shutil.copytree(source_root() / package, tmp_path / package, ignore=leave)
    shutil.copy(source_root() / "orchestrator" / "score_table.py", tmp_path / "orchestrator")
    return tmp_path


def versions(tree: Path) -> dict[str, str]:
    code_version.cache_clear()
    return {stage: code_version(stage, COMPONENTS.get(stage, (MLP,)), tree) for stage in SOURCES}


def stages_changed_by(
    tree: Path, file: str, change: Callable[[str], str] = lambda text: f"{text}\nNEW = 1\n"
) -> set[str]:
    before = versions(tree)
    path = tree / file
    path.write_text(change(path.read_text()))
    after = versions(tree)
    return {stage for stage in SOURCES if before[stage] != after[stage]}


def test_changed_training_code_changes_what_is_trained_and_unlearned(tree: Path) -> None:
    assert stages_changed_by(tree, "audits/training/loop.py") == {
        *("train", "unlearn", "utility", "rank"),
        *("fit", "select", "ask", "judge"),  # asking reads logits by it, and learned attacks are fitted by it
        *("watch", "look", "defend", "invert", "assess", "disclosure"),
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("The one training loop", "Our training loop"),
        lambda text: text.replace("(drawn on the CPU)", "(drawn somewhere)"),
        lambda text: f"# a comment\n{text}",
        lambda text: text.replace("return loss.detach()", "return (\n        loss.detach()\n    )"),
        lambda text: f"\n\n{text}\n\n\n",
    ],
    ids=["module docstring", "docstring", "comment", "formatting", "blank lines"],
)
def test_comments_docstrings_and_formatting_change_nothing(tree: Path, change: Callable[[str], str]) -> None:
    assert change((tree / "audits/training/loop.py").read_text()) != (tree / "audits/training/loop.py").read_text()
    assert stages_changed_by(tree, "audits/training/loop.py", change) == set()


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        ("audits/models/mlp.py", set(SOURCES)),
        ("audits/unlearning/scrub.py", {"unlearn"}),
        ("audits/unlearning/base.py", {"unlearn"}),
        ("audits/evidence/search.py", {"trace", "search"}),
        ("audits/evidence/offline.py", {"trace"}),
        ("audits/evidence/posteriors.py", set()),
        ("audits/data/partition.py", set()),
        ("audits/data/memorisation.py", {"rank"}),
        ("audits/attacks/lira.py", {"score", "assess"}),
        ("audits/disclosure/ridge.py", {"watch", "look", "defend", "invert", "assess", "disclosure"}),
        ("audits/disclosure/triage.py", {"assess"}),
        ("audits/disclosure/noise.py", {"defend"}),
        ("audits/evidence/parts.py", {"trace", "search", "score", "assess"}),
        ("audits/errors.py", set()),
        ("orchestrator/stages/scoring.py", {"score"}),
    ],
)
def test_each_part_of_the_code_decides_its_stages(tree: Path, file: str, stages: set[str]) -> None:
    assert stages_changed_by(tree, file) == stages


@pytest.mark.parametrize(
    "file", ["audits/models/cnn.py", "audits/unlearning/finetune.py", "audits/attacks/label_gap.py"]
)
def test_components_that_take_no_part_decide_nothing(tree: Path, file: str) -> None:
    assert stages_changed_by(tree, file) == set()


def test_a_module_that_a_stage_only_imports_decides_it_too(tree: Path) -> None:
    assert "unlearn" in stages_changed_by(tree, "audits/training/recipe.py")
    (tree / "audits" / "shapes.py").write_text("SIDES = 4\n")
    stages_changed_by(tree, "audits/models/mlp.py", lambda text: f"{text}\nfrom audits.shapes import SIDES\n")
    assert stages_changed_by(tree, "audits/shapes.py") == set(SOURCES)


def test_a_pattern_that_finds_no_code_is_an_error(tree: Path) -> None:
    (tree / "audits" / "seeds.py").unlink()
    code_version.cache_clear()
    with pytest.raises(RuntimeError, match=r"seeds\.py"):
        code_version("train", (), tree)
    with pytest.raises(RuntimeError, match=r"nothing\.py"):
        code_version("score", ("audits.attacks.nothing",), tree)
    with pytest.raises(ValueError, match="no stage 'trian'; stages: train"):
        code_version("trian", (), tree)


def test_every_stage_has_code_in_the_installed_package() -> None:
    for stage in SOURCES:
        assert code_files(stage)
        assert len(code_version(stage)) == 16
    assert "audits/training/recipe.py" in code_files("train")


def test_packages_that_lie_apart_give_the_same_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the workers of a cluster every package is shipped into a folder of its own."""
    code_version.cache_clear()
    here = {stage: code_version(stage) for stage in SOURCES}
    for package in ("audits", "orchestrator"):
        leave = shutil.ignore_patterns("__pycache__", "*.parquet")
        shutil.copytree(source_root(package) / package, tmp_path / f"of-{package}" / package, ignore=leave)
    monkeypatch.setattr(codeversion, "source_root", lambda package="audits": tmp_path / f"of-{package}")
    code_version.cache_clear()
    assert {stage: code_version(stage) for stage in SOURCES} == here
    code_version.cache_clear()


def test_a_digest_depends_on_values_shape_and_dtype_only() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    others = [rows.astype(np.int64), rows.reshape(4, 3), rows + 1, rows.tobytes(), rows[:0], np.int32(0)]
    assert len({digest(array) for array in [rows, *others]}) == 7
    assert digest(np.asfortranarray(rows)) == digest(rows) == digest(rows.astype(">i4"))
    assert digest(np.repeat(rows, 2, axis=0)[::2]) == digest(rows)
    with pytest.raises(TypeError, match="objects"):
        digest(np.array([object()]))


@settings(deadline=None)
@given(st.dictionaries(st.text("abc.", min_size=1, max_size=4), st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?"])))
def test_arrays_come_back_as_they_were_packed(dtypes: dict[str, str]) -> None:
    arrays = {name: (np.arange(6) % 2).astype(dtype).reshape(2, 3).T for name, dtype in dtypes.items()}
    arrays |= {"scalar": np.array(2.5), "none": np.zeros((0, 3), np.float32)}
    found = unpack_arrays(pack_arrays(arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)
    assert pack_arrays(dict(reversed(arrays.items()))) == pack_arrays(arrays)


def test_equal_tables_are_packed_into_equal_bytes() -> None:
    columns = {"name": ["a", "b", None, "a"], "score": [0.5, float("nan"), 1e-300, -0.0], "point": [3, 1, 2, 2]}
    whole = pa.table(columns)
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 3)])
    padded = pa.concat_tables([whole, whole]).slice(4, 4)
    data = pack_table(whole)
    assert pack_table(chunked) == data
    assert pack_table(padded) == data
    encoded = [
        part.set_column(0, "name", part["name"].dictionary_encode()) for part in (whole.slice(2), whole.slice(0, 2))
    ]
    assert pack_table(pa.concat_tables(reversed(encoded))) == data
    assert pack_table(whole.replace_schema_metadata({"written": "today"})) == data
    assert pack_table(unpack_table(data)) == data
    assert unpack_table(data).select(["name", "point"]).equals(whole.select(["name", "point"]))


def test_packing_does_not_depend_on_the_process() -> None:
    code = textwrap.dedent("""
        import hashlib, numpy, pyarrow
        from orchestrator.store import pack_arrays, pack_table, artefact_key
        table = pack_table(pyarrow.table({"a": ["x", "y"], "b": [1.5, 2.5]}))
        arrays = pack_arrays({name: numpy.arange(3.0) for name in {"one", "two", "three"}})
        print(hashlib.sha256(table + arrays).hexdigest(), artefact_key("train", {"b": {"y": 1, "x": 2.0}, "a": [1]}))
    """)

    def output(hash_seed: str) -> str:
        process = subprocess.run(
            [sys.executable, "-c", code],
            cwd=source_root(),
            env={"PYTHONHASHSEED": hash_seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return process.stdout

    assert output("1") == output("2")


def test_engines_of_private_training_decide_only_what_they_train(tree: Path) -> None:
    assert stages_changed_by(tree, "audits/training/private_fast.py") == set()
    assert stages_changed_by(tree, "audits/disclosure/engine.py") == {
        *("watch", "look", "defend", "invert", "assess", "disclosure"),
    }
    fast = ("audits.training.private_fast",)
    assert "audits/disclosure/engine.py" in code_files("train", tree, fast)
    assert "audits/training/private_opacus.py" not in code_files("train", tree, fast)


def test_what_a_selector_reads_decides_only_plans_that_have_it(tree: Path) -> None:
    own = ("audits.membership.candidate_uniqueness",)
    assert "audits/disclosure/engine.py" in code_files("select", tree, own)
    assert "audits/disclosure/engine.py" not in code_files("select", tree)
    base = {"split.pool": 400}
    plain, unique = (
        open_scheduler(load_plan("tmia-smoke", values={**base, "variants": {}, "audit.selectors": names})).select_job()
        for names in (["none", "kmeans"], ["none", "gnq"])
    )
    assert plain.document["code"] != unique.document["code"]


def test_a_private_plan_names_the_engine_that_trains_it() -> None:
    private = {"recipe.noise_multiplier": 1.0, "recipe.max_grad_norm": 1.0}
    for values, modules in (
        ({}, ()),
        (private, ("audits.training.private_fast",)),
        ({**private, "recipe.private_engine": "opacus"}, ("audits.training.private_opacus",)),
    ):
        assert engines(open_scheduler(load_plan("apollo-smoke", values=values)).recipes) == modules


def test_a_private_defence_decides_no_job_but_its_own() -> None:
    recipe = {"learning_rate": 0.1, "epochs": 1, "batch_size": 20, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    removal = [{"method": "remove", "ranking": name, "share": 0.2} for name in ("gnq_log", "random")]
    jobs: list[set[tuple[str, str, str]]] = []
    private = []
    for more in ([], [{"method": "dp_sgd", "recipe": recipe}]):
        scheduler = open_scheduler(load_plan("gnq-smoke", values={"defences": [*removal, *more]}))
        listed = list(scheduler.schedule().everything)
        jobs.append({(job.stage, job.label, job.key) for job in listed})
        private = [job for job in listed if job.label == "dp-noise-1" and job.stage == "defend"]
    assert {label for _, label, _ in jobs[1] - jobs[0]} == {"dp-noise-1"} and jobs[0] < jobs[1]
    assert all("opacus" in job.document["platform"] for job in private)
