"""What is written into a folder goes through one module, and through no link."""

from __future__ import annotations

import ast
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from audits.writing import CannotWrite, make_folder, opened_to_append, write_together, write_whole
from tests.cases.families import as_one

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("orchestrator", "audits", "actors", "tune_spaces")
WRITERS = {
    "write_text", "write_bytes", "touch", "mkdir", "makedirs", "mkstemp", "NamedTemporaryFile", "rename", "copy",
    "copy2", "copyfile", "copytree", "move", "symlink", "symlink_to", "hardlink_to", "extractall", "save_file",
    "savefig", "savez", "savez_compressed", "imsave", "write_table", "to_csv", "to_parquet", "ParquetWriter",
}  # fmt: skip
MODULES_OF_COPY = ("shutil",)
BUFFERS = ("BytesIO", "StringIO", "BufferOutputStream", "replacing", "written_anew")
ALLOWED = {
    ("orchestrator/engine/run/tracking_database.py", "connect"): "of a file with one name; undoes what was cut",
    ("audits/writing.py", "mkdir"): "the one place",
    ("actors/cluster.py", "symlink"): "in a new temporary folder",
    ("actors/teams.py", "mkdir"): "Ray's own folder",
    ("orchestrator/engine/store/disk.py", "rename"): "a folder that is removed",
    ("orchestrator/cli/main.py", "mkstemp"): "a new file in the folder for temporary ones",
    ("orchestrator/cli/main.py", "open w"): "the null device",
    ("orchestrator/cli/gating.py", "open ab"): "the summary that a variable of CI names",
    ("orchestrator/cli/gating.py", "open a+b"): "the summary that a variable of CI names",
    ("orchestrator/cli/submit.py", "copy"): "into a new temporary folder",
    ("orchestrator/cli/submit.py", "copytree"): "into a new temporary folder",
    ("orchestrator/cli/submit.py", "mkdir"): "in a new temporary folder",
    ("orchestrator/engine/run/tracking_models.py", "copy"): "into a new temporary folder",
}


CALLS = [f"{name}(" for name in ("open", "connect", "save", ".replace", *sorted(WRITERS))]


def name_of(function: ast.expr) -> tuple[str, str]:
    """Return the module or variable before the dot, if it is one, and the name of what is called."""
    if isinstance(function, ast.Attribute):
        return function.value.id if isinstance(function.value, ast.Name) else "", function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def buffers(tree: ast.Module) -> set[str]:
    """Return the variables of a module that are no files, or files that the one writer opened."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found |= {argument.arg for argument in node.args.args}
        pairs = []
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = list(zip(target.elts, value.elts, strict=True)) if both else [(target, value)]
        elif isinstance(node, ast.With):
            pairs = [(item.optional_vars, item.context_expr) for item in node.items]
        for target, value in pairs:
            if isinstance(target, ast.Name) and isinstance(value, ast.Call) and name_of(value.func)[1] in BUFFERS:
                found.add(target.id)
    return found


def writes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that writes a file, makes a folder, or may do so."""
    known = buffers(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        before, name = name_of(node.func)
        first = node.args[0] if node.args else None
        if name == "open" and before != "os":
            given = [*node.args, *(word.value for word in node.keywords if word.arg == "mode")]
            words = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            modes = [word for word in words if 0 < len(word) < 4 and set(word) <= set("rwxabt+")]
            opened = isinstance(first, ast.Call) and name_of(first.func)[1] == "opened_to_append"
            opened |= isinstance(first, ast.Name) and first.id in ("descriptor", "own")  # numbers of open files
            opened |= isinstance(first, ast.Call) and name_of(first.func)[1] == "opened_to_lock"
            # a file that is made by "x" is new, and no link is followed
            yield from ((node.lineno, f"open {mode}") for mode in modes if set(mode) & set("wa+") and not opened)
        elif before == "os" and name == "open" and "O_CREAT" in ast.dump(node):
            yield node.lineno, "os.open"
        elif (before, name) == ("sqlite3", "connect") or (before == "torch" and name == "save"):
            yield node.lineno, name
        elif name == "replace" and len(node.args) == 1 and not node.keywords and before not in ("dataclasses", "pc"):
            yield node.lineno, "replace"
        elif name in WRITERS and not any(isinstance(each, ast.Name) and each.id in known for each in node.args[:2]):
            if name.startswith(("copy", "move")) and before not in MODULES_OF_COPY:
                continue  # of dicts and modules
            yield node.lineno, name


def bare(folder: Path) -> list[str]:
    """Return the places below ``folder`` that write on their own."""
    return [
        f"{file.relative_to(folder)}:{line}: {name}"
        for package in PACKAGES
        for file in sorted((folder / package).rglob("*.py"))
        for text in (file.read_text(),)
        if any(call in text for call in CALLS)  # else there is nothing to find
        for line, name in writes(ast.parse(text))
        if (str(file.relative_to(folder)), name) not in ALLOWED
        and (str(file.relative_to(folder)), name) != ("audits/writing.py", "os.open")
    ]


def test_all_files_are_written_by_one_module() -> None:
    assert not (found := bare(ROOT)), "use audits.writing:\n" + "\n".join(found)


@as_one("line", [
        "open(file, 'w')", "file.open('ab')", "file.open(mode='r+b')", "file.write_text('')", "figure.savefig(file)",
        "pq.write_table(table, file)", "os.open(file, os.O_CREAT | os.O_WRONLY)", "sqlite3.connect(file)",
        "part.replace(file)",
        "np.savez(file, a=a)", "file.mkdir()", "shutil.copytree(a, b)", "frame.to_csv(file)", "save_file(state, file)",
    ])  # fmt: skip
def test_a_new_bare_write_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "new.py").write_text(f"def new(file):\n    {line}\n")
    assert len(bare(tmp_path)) == 1


def test_every_exception_is_still_needed() -> None:
    found = {
        (name, word)
        for name in {name for name, _ in ALLOWED}
        for _, word in writes(ast.parse((ROOT / name).read_text()))
    }
    assert set(ALLOWED) <= found


@as_one("name", ["..", ".", "", "a/b", "../own"])
def test_a_name_leads_out_of_no_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "run" / "a").mkdir(parents=True)
    with pytest.raises(CannotWrite):
        write_together(tmp_path / "run", {name: b"theirs"})
    with pytest.raises(CannotWrite):
        write_whole(tmp_path / "run" / ".." / "own", b"theirs", below=tmp_path / "run")
    assert os.listdir(tmp_path) == ["run"] and not [each for each in os.listdir(tmp_path / "run") if each != "a"]


def test_a_link_that_comes_while_a_file_is_written_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, own = tmp_path / "run", tmp_path / "own"
    (run / "figures").mkdir(parents=True)
    own.write_text("own")
    (tmp_path / "elsewhere").mkdir()
    real = os.write

    def raced(handle: int, data: bytes) -> int:
        (run / "figures" / "a.csv").symlink_to(own)
        (run / "figures").rename(run / "former")
        (run / "figures").symlink_to(tmp_path / "elsewhere")
        return real(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", raced)
        write_whole(run / "figures" / "a.csv", b"theirs", below=run)
    assert own.read_text() == "own" and not os.listdir(tmp_path / "elsewhere")
    assert (run / "former" / "a.csv").read_bytes() == b"theirs" and not (run / "former" / "a.csv").is_symlink()


def test_the_folder_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to("disk")
    make_folder(tmp_path / "run")
    make_folder(tmp_path / "run" / "figures", below=tmp_path / "run")
    write_whole(tmp_path / "run" / "figures" / "a.csv", b"1", below=tmp_path / "run")
    assert (tmp_path / "disk" / "figures" / "a.csv").read_bytes() == b"1"


def test_of_several_files_none_has_its_name_where_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(CannotWrite) as error:
        write_together(tmp_path, {"a": b"1", "b": b"2"})
    assert error.value.errno == errno.EISDIR and os.listdir(tmp_path) == ["b"]


def test_a_log_is_appended_to_and_through_no_link(tmp_path: Path) -> None:
    file = tmp_path / "orch.log"
    for text in (b"one\n", b"two\n"):
        with open(opened_to_append(file), "ab") as log:
            log.write(text)
    assert file.read_bytes() == b"one\ntwo\n"
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "pipe"):
        with pytest.raises(CannotWrite, match=name):
            opened_to_append(tmp_path / name)
    assert not (tmp_path / "absent").exists()
