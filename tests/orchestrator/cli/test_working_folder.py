"""A command that is started in a folder of somebody else's imports no module from there."""

from __future__ import annotations

import importlib
import os
import py_compile
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path

import pytest

import orchestrator.cli.submit
from audits.errors import BadInput
from audits.own import import_path
from audits.own.code import load
from audits.own.sources import forget
from orchestrator.cli import own_packages
from orchestrator.cli.session import Session
from orchestrator.cli.submit import start
from orchestrator.cli.submitted_work import read_command
from orchestrator.engine.jobs import code_version
from orchestrator.engine.own_code import own_code
from orchestrator.report.style import drawing, save
from tests.cases.planted import ROOT, command, plant, run

LATE = ("matplotlib", "mlflow", "numpy", "pyarrow", "pydantic", "ray", "scipy", "sklearn", "torch", "yaml")
"""Imported behind the first lines of a command; before these Python itself decides."""


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param(f"{ROOT}", ["-m", "orchestrator.cli.main"], marks=pytest.mark.long),
        pytest.param(f":{ROOT}", ["{script}"], marks=pytest.mark.long),
        pytest.param(f"{ROOT}:.", ["{script}"], marks=pytest.mark.long),
        pytest.param(f"{ROOT}:", ["-m", "orchestrator.cli.main"], marks=pytest.mark.long),
    ],
    ids=["python -m", "an empty entry", "a dot", "both"],
)
def test_a_command_imports_nothing_from_its_working_folder(path: str, words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    imported = plant(folder, *LATE)
    _, script = command(tmp_path)
    done = run([sys.executable, *(word.format(script=script) for word in words), "validate", "mia-smoke"], folder, path)
    assert done.returncode == 0, done.stderr
    assert not imported.exists(), imported.read_text()


def test_a_command_of_few_imports_takes_none_of_them_from_its_working_folder(tmp_path: Path) -> None:
    """By default for the whole ones above, which import torch."""
    folder = tmp_path / "theirs"
    imported = plant(folder, *LATE)
    done = run([*command(tmp_path), "validate", "plan.yaml"], folder, f"{ROOT}:.")
    assert done.returncode == 2 and "plan.yaml" in done.stderr
    assert not imported.exists(), imported.read_text()


def test_processes_that_a_command_starts_do_not_see_its_working_folder(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "from orchestrator.cli import main as commands\n"
        "commands.invoke = lambda *_: subprocess.run([sys.executable, '-c', 'import json, numpy']).returncode\n"
        "sys.exit(commands.main([]))\n"
    )
    imported = plant(tmp_path / "theirs", "json", "numpy")
    done = run([sys.executable, "-P", "-c", script], tmp_path / "theirs")
    assert done.returncode == 0 and not imported.exists(), done.stderr


def test_a_relative_entry_that_an_installation_added_is_not_looked_for_in_the_working_folder(tmp_path: Path) -> None:
    """Neither for modules nor for what installed packages offer."""
    folder = tmp_path / "theirs"
    (folder / "added" / "nice-1.0.dist-info").mkdir(parents=True)
    (folder / "added" / "nice-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: nice\nVersion: 1\n")
    imported = plant(folder / "added", "planted_one")
    script = (
        "import sys\nfrom importlib import metadata, util\nsys.path.append('added')\n"
        "from orchestrator.cli.main import main\n"
        "names = [each.metadata['Name'] for each in metadata.distributions()]\n"
        "print(util.find_spec('planted_one'), 'nice' in names, 'ray' in names)\n"
    )
    done = run([sys.executable, "-P", "-c", script], folder)
    assert done.stdout == "None False True\n", done.stderr
    assert not imported.exists()


def test_a_folder_that_the_user_names_in_full_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    script = "from orchestrator.cli.main import main\nfrom audits.own.import_path import path_of_workers\nimport mine\n"
    done = run([sys.executable, "-P", "-c", f"{script}print(path_of_workers())"], tmp_path, f"{tmp_path}:{ROOT}")
    assert done.stdout == f"{[str(tmp_path), str(ROOT)]}\n", done.stderr


@pytest.mark.parametrize("name", ["actors", "audits", "tune_spaces"])
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
def test_a_package_of_others_with_a_name_of_ours_is_refused_before_it_is_imported(
    name: str, form: str, tmp_path: Path
) -> None:
    file = tmp_path / "installed" / form.format(name)
    file.parent.mkdir(parents=True)
    file.write_text("raise SystemExit('imported')\n")
    done = run([*command(tmp_path), "ls", "audits"], tmp_path, f"{tmp_path / 'installed'}:{ROOT}")
    assert done.returncode == 2 and not done.stdout
    (line,) = done.stderr.splitlines()
    assert f"the package {name!r} from {tmp_path / 'installed' / name}" in line and str(ROOT) in line


def test_so_is_one_in_the_working_folder_that_an_empty_entry_of_the_path_names(tmp_path: Path) -> None:
    imported = plant(tmp_path / "theirs", "actors")
    done = run([*command(tmp_path), "ls", "audits"], tmp_path / "theirs", f":{ROOT}")
    assert done.returncode == 2 and not done.stdout and not imported.exists()
    assert "the package 'actors'" in done.stderr and len(done.stderr.splitlines()) == 1


def test_workers_get_the_path_before_the_standard_library_without_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "lib", "late"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    library = [entry for entry in sys.path if entry and os.path.realpath(entry) != str(ROOT)]
    places = ["", str(tmp_path / "lib"), str(tmp_path / "gone"), str(ROOT), str(tmp_path / "here")]
    monkeypatch.setattr(sys, "path", [*places, *library, str(tmp_path / "late")])
    found = import_path.path_of_workers()
    assert found[:2] == [str(tmp_path / "lib"), str(ROOT)]
    assert not {str(tmp_path / "here"), str(tmp_path / "late")} & set(found)
    monkeypatch.chdir(ROOT)
    assert str(ROOT) in import_path.path_of_workers(), "a checkout is where this project lies"


def test_code_of_a_users_own_comes_behind_packages_without_an_init_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_path.LAST, "folders", [])
    (tmp_path / "installed" / "spread_out").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "installed")])
    imported = plant(tmp_path / "mine", "spread_out", "numpy", "json", "wave")
    (tmp_path / "mine" / "own_numbers.py").write_text("import wave\nimport numpy\nimport spread_out\nSEVEN = 7\n")
    assert load("python:own_numbers:SEVEN", tmp_path / "mine") == 7
    assert code_version.reached(("own_numbers",)) == ["own_numbers"], "so no other file travels"
    assert not imported.exists()
    for name in ("spread_out", "numpy", "wave"):
        with pytest.raises(BadInput, match=f"Python finds another module '{name}' .* rename yours"):
            load(f"python:{name}:x", tmp_path / "mine")
    assert not imported.exists()


@pytest.mark.parametrize("module", ["read_by_people", "a_read_package", "a_read_package.within"])
def test_what_runs_is_the_source_and_no_bytecode_beside_it(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_path.LAST, "folders", [])
    for name in ("read_by_people.py", "a_read_package/__init__.py", "a_read_package/within.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("WHAT = 'bytecode'\n")
        py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        file.write_text("WHAT = 'source'\n")
        file.with_name(f"{file.stem}{EXTENSION_SUFFIXES[0]}").write_text("no library")
    for known in [name for name in sys.modules if name.partition(".")[0] == "a_read_package"]:
        forget(known)
    assert load(f"python:{module}:WHAT", tmp_path) == "source"


@pytest.mark.parametrize("decoy", [False, True])
def test_permission_for_a_module_that_lies_elsewhere_is_none_for_what_lies_here(
    decoy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_path.LAST, "folders", [])
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    monkeypatch.syspath_prepend(tmp_path / "mine")
    (tmp_path / "mine" / "own_numbers_elsewhere.py").write_text("SEVEN = 7\n")
    imported = plant(tmp_path / "theirs", "not_installed_anywhere")
    if decoy:
        (tmp_path / "theirs" / "own_numbers_elsewhere").mkdir()  # a package of its kind, too
    assert load("python:own_numbers_elsewhere:SEVEN", tmp_path / "theirs") == 7
    own_code([{"name": "python:own_numbers_elsewhere:SEVEN"}])
    (tmp_path / "theirs" / "__main__.py").touch()
    import_path.search_for("__main__", tmp_path / "theirs")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("not_installed_anywhere")  # noqa: TID251  # as a library tries what may be there
    assert not imported.exists() and not import_path.LAST.folders


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Take the place of a job server; return what it gets, relative to the folder that is sent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours" / "audits").mkdir(parents=True)
    (tmp_path / "ours" / "audits" / "__init__.py").write_text("# ours\n")
    monkeypatch.setattr(orchestrator.cli.submit, "source_folders", lambda: [tmp_path / "ours" / "audits"])
    return []


class Server:
    """Notes the files that it is sent."""

    def __init__(self, sent: list[str]) -> None:
        self.sent = sent

    def submit(self, name: str, entrypoint: str, folder: Path, variables: dict[str, str]) -> None:
        self.sent.extend(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def submit(sent: list[str]) -> None:
    """Send the audit of ``plan.yaml``."""
    work = read_command(Session(), ["audit", "apollo", "plan.yaml", "--store", "/srv/store"])
    start(Server(sent), work)  # type: ignore[arg-type]  # as much of a server as start asks for


@pytest.mark.parametrize(
    "name",
    [
        "numpy.py",
        "audits/__init__.py",
        "audits/x.pyc",
        "torch.so",
        "x-1.0.dist-info/entry_points.txt",
        "X.Egg-Info/entry_points.txt",
        "x.egg",
        "libcuda.so.1",
        "audits/shell.html.j2",
        ".rayignore",
        "./audits/new/plan.yaml",
    ],
)
def test_no_file_that_a_plan_names_is_sent_as_code(name: str, sent: list[str], tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("id,group\n0,0\n")
    (tmp_path / "plan.yaml").write_text(f"data: {{name: digits, groups: {name}}}\n")
    with pytest.raises(BadInput, match=f"{name} is not sent"):
        submit(sent)
    assert not sent


@pytest.mark.parametrize("link", ["groups.csv", "lists"])
def test_no_file_behind_a_link_is_sent(link: str, sent: list[str], tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "groups.csv").write_text("id,group\n0,0\n")
    (tmp_path / link).symlink_to(tmp_path / "secret" / ("groups.csv" if link == "groups.csv" else ""))
    named = link if link == "groups.csv" else f"{link}/groups.csv"
    (tmp_path / "plan.yaml").write_text(f"data: {{name: digits, groups: {named}}}\n")
    with pytest.raises(BadInput, match="is not sent"):
        submit(sent)
    assert not sent


def test_a_file_of_groups_is_sent_where_the_plan_names_it(sent: list[str], tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "groups.csv").write_text("id,group\n0,0\n")
    (tmp_path / "plan.yaml").write_text("data: {name: digits, groups: lists/groups.csv}\n")
    submit(sent)
    assert sorted(sent) == ["audits/__init__.py", "lists/groups.csv", "plan.yaml"]


@pytest.mark.parametrize("name", ["~/groups.csv", "/srv/groups.csv", "../groups.csv"])
def test_groups_elsewhere_are_those_of_the_cluster(name: str, sent: list[str], tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(f"data: {{name: digits, groups: {name}}}\n")
    submit(sent)
    assert sorted(sent) == ["audits/__init__.py", "plan.yaml"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["secrets.env", "notes.csv", "pipe.csv", "absent.csv"])
def test_a_file_that_is_no_list_of_groups_is_not_sent(name: str, sent: list[str], tmp_path: Path) -> None:
    (tmp_path / "secrets.env").write_text("TOKEN=1234\n")
    (tmp_path / "notes.csv").write_text("id,diagnosis\n0,1\n")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "plan.yaml").write_text(f"data: {{name: digits, groups: {name}}}\n")
    with pytest.raises(BadInput, match=name):
        submit(sent)
    assert not sent


def test_links_in_a_package_of_users_own_do_not_travel(sent: list[str], tmp_path: Path) -> None:
    (tmp_path / "a_package_that_travels").mkdir()
    (tmp_path / "a_package_that_travels" / "__init__.py").write_text("def points(*_): ...\n")
    (tmp_path / "secret").write_text("TOKEN=1234\n")
    (tmp_path / "a_package_that_travels" / "data.csv").symlink_to(tmp_path / "secret")
    (tmp_path / "plan.yaml").write_text("data: {name: python:a_package_that_travels:points}\n")
    submit(sent)
    assert sorted(sent) == ["a_package_that_travels/__init__.py", "audits/__init__.py", "plan.yaml"]


STYLE = {"text.usetex": True, "lines.linestyle": "--", "axes.titlepad": 90.0}


def test_figures_do_not_follow_a_style_that_is_set(tmp_path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    def page() -> str:
        with drawing("one"):
            figure = Figure()
            figure.subplots().plot([1, 2], label="$x_1$")
            return save(figure, "one", tmp_path)

    plain = page()
    with rc_context(STYLE):
        styled = page()
    assert plain == styled and "<svg" in plain


@pytest.mark.long
def test_figures_do_not_follow_a_style_that_lies_in_the_working_folder(tmp_path: Path) -> None:
    """In short: the one above, where the file of a style has been read."""
    drawn = (
        "import sys\nfrom pathlib import Path\nfrom matplotlib.figure import Figure\n"
        "from orchestrator.report.style import drawing, save\n"
        "with drawing('one'):\n    figure = Figure()\n    figure.subplots().plot([1, 2], label='$x_1$')\n"
        "sys.stdout.write(save(figure, 'one', Path('out')))\n"
    )
    pages = []
    for name, text in (("plain", ""), ("styled", "".join(f"{key}: {value}\n" for key, value in STYLE.items()))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "matplotlibrc").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", drawn],
            cwd=tmp_path / name,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        pages.append(done.stdout)
    assert pages[0] == pages[1] and "<svg" in pages[0]


def test_no_file_of_settings_of_matplotlib_is_read_in_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("axes.titlepad: 90.0\n")
    said = run(
        [
            sys.executable,
            "-P",
            "-c",
            "import orchestrator.cli, matplotlib; print(matplotlib.rcParams['axes.titlepad'])",
        ],
        tmp_path,
    )
    assert float(said.stdout) != 90


@pytest.mark.parametrize(("place", "refused"), [("py_modules_files/_ray_pkg_b", False), ("elsewhere/_ray_pkg_b", True)])
def test_packages_that_a_driver_sends_to_workers_lie_in_folders_of_their_own(
    place: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_packages, "ROOT", tmp_path / "py_modules_files" / "_ray_pkg_a")

    def spec(name: str) -> ModuleSpec:
        found = ModuleSpec(name, None, is_package=True)
        found.submodule_search_locations = [str(tmp_path / place / name)]
        return found

    monkeypatch.setattr(own_packages, "find_spec", spec)
    assert bool(own_packages.misplaced()) == refused
