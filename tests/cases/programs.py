"""Which programs tests may start: those of a bare machine, and what a test declares by ``pytest.mark.needs("zsh")``.

A bare machine has what README requires: Python, a C compiler, ``make``, ``git`` and coreutils, with ``sh``. Every test
runs with a PATH of these and of the programs that it declares, so a test that starts another one fails wherever it
runs. A start by a path that PATH does not decide is judged when it happens. A test whose programs are missing is
skipped, and the end of the run lists these programs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

COREUTILS = """
[ arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown chroot cksum comm cp csplit cut date dd df dir
dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname ls
md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd
readlink realpath rm rmdir runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat
stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink users vdir wc
who whoami yes
"""
COMPILER = ("cc", "gcc", "clang", "as", "ld")
BARE = frozenset({"python", "python3", "sh", "make", "git", *COMPILER, *COREUTILS.split()})
SYSTEM = (*os.defpath.split(os.pathsep), "/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where programs are, whatever PATH says."""
MISSING = "missing program"
"""The property of a skipped test that names a program."""


class Machine:
    """The programs of this machine as tests see them.

    ``allowed``: names that the running test may start; None: no test runs. ``undeclared``: others that it has started.
    """

    def __init__(self) -> None:
        self.path = os.environ.get("PATH", os.defpath)
        places = {os.path.realpath(place) for place in (*self.path.split(os.pathsep), *SYSTEM)}
        self.places = places - {os.path.realpath(Path(sys.executable).parent)}
        self.folder: Path | None = None
        self.allowed: frozenset[str] | None = None
        self.undeclared: set[str] = set()

    def find(self, program: str) -> str | None:
        """Return the path of a program, whether or not a test declares it."""
        return shutil.which(program, path=self.path)

    def path_with(self, declared: Collection[str]) -> str:
        """Return a PATH of folders that hold links to the bare machine's programs and to those that are declared."""
        both = (("bare", BARE), ("+".join(sorted(declared)), declared))
        return os.pathsep.join(str(self._links(name, programs)) for name, programs in both if programs)

    def _links(self, name: str, programs: Collection[str]) -> Path:
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="programs"))
        if not (folder := self.folder / name).exists():
            made = Path(tempfile.mkdtemp(dir=self.folder))
            for program in programs:
                if found := self.find(program):
                    (made / program).symlink_to(found)
            with suppress(OSError):  # another process was first
                made.rename(folder)
        return folder

    def remove_links(self) -> None:
        """Remove the folders of links."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def saw(self, program: str | bytes | os.PathLike[str], variables: Mapping[Any, Any] | None) -> None:
        """Note what is started with these environment variables (None: those of this process)."""
        if self.allowed is None:
            return
        known = os.environ if variables is None else {os.fsdecode(k): os.fsdecode(v) for k, v in variables.items()}
        found = shutil.which(os.fsdecode(program), path=known.get("PATH", os.defpath))
        if found and os.path.realpath(Path(found).parent) in self.places and Path(found).name not in self.allowed:
            self.undeclared.add(found)


MACHINE = Machine()


def watch(event: str, values: tuple[Any, ...]) -> None:
    """Tell ``MACHINE`` of each program that this process starts."""
    if event == "subprocess.Popen":
        MACHINE.saw(values[0], values[3])
    elif event == "os.posix_spawn":
        MACHINE.saw(values[0], values[2])


def declared_by(item: pytest.Item) -> frozenset[str]:
    """Return the programs that a test declares; Ray starts every worker by bash, so ``cluster`` declares that."""
    implied = ("bash",) if item.get_closest_marker("cluster") else ()
    return frozenset(program for mark in item.iter_markers("needs") for program in mark.args).union(implied)


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker, watch what is started, and remove the links in the end."""
    sys.addaudithook(watch)
    config.addinivalue_line("markers", "needs(program, ...): starts these programs; skipped where one is missing")
    config.add_cleanup(MACHINE.remove_links)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests on a bare machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", MACHINE.path_with(()))
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests whose programs are missing."""
    for item in items:
        if missing := sorted(program for program in declared_by(item) if not MACHINE.find(program)):
            item.user_properties += [(MISSING, program) for program in missing]
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}, not found on PATH"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test on a bare machine with the programs that it declares."""
    declared = declared_by(item)
    MACHINE.allowed = BARE | declared
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", MACHINE.path_with(declared))
            return (yield)
    finally:
        MACHINE.allowed = None
        MACHINE.undeclared.clear()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Fail a test that has started what it does not declare."""
    result = yield
    if MACHINE.undeclared:
        pytest.fail(f"started {', '.join(sorted(MACHINE.undeclared))}: declare it by pytest.mark.needs(NAME)", False)
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the programs that are missing, and how many tests each has skipped."""
    skipped = Counter(
        program
        for report in terminalreporter.stats.get("skipped", [])
        for name, program in getattr(report, "user_properties", [])
        if name == MISSING
    )
    if skipped:
        terminalreporter.section("programs that are missing")
        for program, tests in sorted(skipped.items()):
            terminalreporter.write_line(f"{program}: {tests} {'test' if tests == 1 else 'tests'} skipped")
