"""The working folder is elsewhere while torch is imported where it tempts torch, and is what it was behind that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from audits.own import libraries
from audits.own.libraries import tempts_libraries, working_folder_elsewhere
from orchestrator.cli import node_report
from tests.cases.planted import ROOT, library

TORCH = "import os, time\ntime.sleep(0.1)\nfrom torch import inner\nWHERE = os.getcwd(), inner.WHERE\n{last}\n"
SAID = "print(torch.WHERE, os.getcwd(), type(torch.__spec__.loader).__name__, sep='|')"
ONCE = f"import os, torch\n{SAID}"
AT_ONCE = f"""
import os, sys, threading
seen, both = [], threading.Barrier(2)
def imported():
    both.wait()
    import torch
    seen.append(torch.WHERE)
threads = [threading.Thread(target=imported) for _ in range(2)]
[each.start() for each in threads], [each.join() for each in threads]
torch = sys.modules["torch"]
assert seen == [torch.WHERE] * 2
{SAID}
"""
TWICE = """
import os, torch.inner
print(torch.inner.WHERE == torch.WHERE[1], os.getcwd())
"""
FAILS = """
import os
try:
    import torch
except RuntimeError as error:
    print(error, os.getcwd())
"""


def tempting(folder: Path) -> Path:
    """Return a new folder that holds a library."""
    folder.mkdir()
    (folder / "libany.so.1").touch()
    return folder


def said_by(script: str, folder: Path, last: str = "", begin: str = "import orchestrator.cli") -> str:
    """Return what a script prints that is run in ``folder``, and finds a small package under the name of torch."""
    torch = folder.parent / "installed" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text(TORCH.format(last=last))
    (torch / "inner.py").write_text("import os\nWHERE = os.getcwd()\n")
    surroundings = {**os.environ, "PYTHONPATH": f"{torch.parent}:{ROOT}"}
    words = [sys.executable, "-P", "-c", f"import sys\n{begin}\nassert 'torch' not in sys.modules\n{script}"]
    done = subprocess.run(words, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("script", [ONCE, AT_ONCE], ids=["once", "by two threads at once"])
@pytest.mark.parametrize("begin", ["import orchestrator.cli", "import orchestrator.api"])
def test_torch_is_imported_with_the_working_folder_elsewhere(script: str, begin: str, tmp_path: Path) -> None:
    folder = tempting(tmp_path / "theirs")
    assert said_by(script, folder, begin=begin) == f"('/', '/')|{folder}|SourceFileLoader"


def test_so_it_is_where_a_module_inside_is_imported(tmp_path: Path) -> None:
    folder = tempting(tmp_path / "theirs")
    assert said_by(TWICE, folder) == f"True {folder}"


def test_an_import_that_fails_leaves_the_working_folder_as_it_was(tmp_path: Path) -> None:
    folder = tempting(tmp_path / "theirs")
    assert said_by(FAILS, folder, "raise RuntimeError('no device')") == f"no device {folder}"


def test_a_working_folder_that_was_removed_is_none_behind_it_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    (tmp_path / "a").rmdir()
    with working_folder_elsewhere():
        assert os.getcwd() == "/"
    with pytest.raises(FileNotFoundError):
        os.getcwd()


@pytest.mark.parametrize("name", ["plan.yaml", "lib.so.d", "glibc-hwcaps", "x86_64", "matplotlibrc"])
def test_relative_paths_of_other_threads_hold_where_nothing_tempts_a_library(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "FOR_PROCESSORS", {"glibc-hwcaps", "x86_64"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    assert tempts_libraries() == (name != "plan.yaml")


def test_a_working_folder_without_libraries_stays_while_torch_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    assert said_by(ONCE, folder) == f"('{folder}', '{folder}')|{folder}|SourceFileLoader"


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_into_a_folder_where_others_may_put_a_library_meanwhile_nobody_looks(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    folder.chmod(mode)
    assert said_by(ONCE, folder) == f"('/', '/')|{folder}|SourceFileLoader"


def test_what_torch_compiles_is_kept_where_nobody_else_can_put_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(libraries.COMPILED, raising=False)
    libraries.keep_compiled_code_apart()
    place = tmp_path / "cache" / "orch" / "torchinductor"
    assert os.environ[libraries.COMPILED] == str(place) and place.stat().st_mode & 0o077 == 0
    monkeypatch.setenv(libraries.COMPILED, "/chosen")
    libraries.keep_compiled_code_apart()
    assert os.environ[libraries.COMPILED] == "/chosen"
    monkeypatch.delenv(libraries.COMPILED)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "nowhere")  # a relative cache is passed over, and here so is the usual one
    for elsewhere in ("/proc/none", "relative", str(tmp_path / "open")):
        monkeypatch.setenv("XDG_CACHE_HOME", elsewhere)
        libraries.keep_compiled_code_apart()
        assert libraries.COMPILED not in os.environ
    assert not (tmp_path / "relative").exists() and not (tmp_path / "nowhere").exists()


def test_a_working_folder_that_is_moved_meanwhile_is_come_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    with working_folder_elsewhere():
        assert os.getcwd() == "/"
        (tmp_path / "a").rename(tmp_path / "b")
    assert os.getcwd() == str(tmp_path / "b")


def test_no_library_of_the_working_folder_is_run(tmp_path: Path) -> None:
    """Of the driver of a GPU, which some builds of torch look for there."""
    (tmp_path / "theirs").mkdir()
    loaded = library(tmp_path / "theirs", "libcuda.so.1")
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = "import orchestrator.cli\nimport torch"
    subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path / "theirs", env=surroundings, check=True)
    assert not loaded.exists()


def test_gpus_are_counted_by_a_process_outside_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "exists", lambda _: True)  # the device of a GPU
    monkeypatch.setattr(node_report, "COUNT_GPUS", "import os\nprint(len(os.getcwd()))")
    assert node_report.count_gpus() == len("/")


HDFS = """
import os
from audits.data.shards import file_system
from orchestrator.engine.store.object_storage import ObjectStorage
for name in ("hdfs", "viewfs"):
    for opens in (file_system, ObjectStorage):
        try:
            opens(f"{name}://127.0.0.1:1/x")
        except Exception as error:
            print(type(error).__name__, os.getcwd())
"""


def test_no_library_of_the_working_folder_opens_a_file_system(tmp_path: Path) -> None:
    """There pyarrow would look first, before the installation of Hadoop that the environment names."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    loaded = library(folder, "libhdfs.so")
    (tmp_path / "java" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "hadoop" / "lib" / "native").mkdir(parents=True)
    meant = [
        library(tmp_path / "java" / "lib" / "server", "libjvm.so"),
        library(tmp_path / "hadoop" / "lib" / "native", "libhdfs.so"),
    ]
    homes = {"JAVA_HOME": str(tmp_path / "java"), "HADOOP_HOME": str(tmp_path / "hadoop")}
    surroundings = {**os.environ, **homes, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-P", "-c", HDFS]
    done = subprocess.run(words, cwd=folder, env=surroundings, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} {folder}" for name in ("BadInput", "StoreUnusable")] * 2
    assert not loaded.exists() and all(file.exists() for file in meant)
