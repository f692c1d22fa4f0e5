"""Completion in bash, zsh and fish: what is offered, and that asking for it imports nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.known_kinds import KNOWN, LISTS
from orchestrator.cli.listing import lists
from orchestrator.cli.main import COMMANDS, main
from orchestrator.cli.shells import joined
from orchestrator.kinds import KINDS, kind_named
from tests.cases.terminals import ROOT, Screen, opened
from tests.orchestrator.cli.test_main import HEAVY


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program ``orch`` in ``bin`` and a plan file."""
    place = tmp_path_factory.mktemp("completion")
    program = place / "bin" / "orch"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator.cli.main "$@"\n')
    program.chmod(0o755)
    (place / "mine.yaml").write_text("audit: {kind: mia}\nrecipe: {epochs: 3}\n")
    return place


@pytest.fixture
def offered(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Return what bash is offered for a line that ends at the cursor."""
    monkeypatch.chdir(place)

    def asked(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_ORCH_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert main([]) == 0
        return [text.partition(",")[2] for text in capsys.readouterr().out.splitlines() if text]

    return asked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("orch sw", ["sweep"]),
        ("orch audit ", ["apollo", "tmia", "gnq", "mia"]),
        ("orch audit gnq gnq-sm", ["gnq-smoke"]),
        ("orch audit mia min", ["min"]),  # a file: bash looks for it
        ("orch audit mia mine.yaml --set rec", ["recipe.epochs="]),
        ("orch audit apollo --set split.cand", ["split.candidates.forget=", "split.candidates.unseen="]),
        ("orch audit mia --fail-above auc", ["auc=", "auc_low="]),
        ("orch audit gnq --fail-above white_box.auc_", ["white_box.auc_low=", "white_box.auc_high="]),
        ("orch audit mia --set seed = 3 --fail-above tp", ["tpr=", "tpr_low="]),  # bash takes it apart
        ("orch audit mia --set model.name =", []),
        ("orch audit mia --set model.name = ml", []),
        ("orch audit mia --set = recipe.ep", ["recipe.epochs="]),
        ("orch audit mia --set = recipe.epochs =", []),
        ("orch audit mia --fail-above = auc", ["auc=", "auc_low="]),
        ("orch audit mia --target we", ["we"]),  # a file
        ("orch new --size m", ["minutes"]),
        ("orch sweep apollo-abl", ["apollo-ablation"]),
        ("orch sweep --vary audit.search.al", ["audit.search.alpha="]),
        ("orch tune gnq --vary split.pool", ["split.pools="]),
        ("orch tune apollo apollo-abl", ["apollo-ablation"]),
        ("orch ls sel", ["selectors"]),
        ("orch cp mia-ep", ["mia-epochs"]),
        ("orch audit mia --qui", ["--quiet"]),
        ("orch completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_what_is_offered(offered: Callable[[str], list[str]], line: str, words: list[str]) -> None:
    assert offered(line) == words


@pytest.mark.parametrize("name", ["$(touch ran)", "a;touch ran", "`touch ran`", "two words", "a\nplain,b", "~root"])
def test_no_name_is_offered_in_which_a_shell_would_find_more_than_a_word(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: Callable[[str], list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in (name, "plain-2_b"):
        (tmp_path / "runs" / each).mkdir(parents=True)
        (tmp_path / "runs" / each / "result.json").write_text("{}")
    (tmp_path / "theirs.yaml").write_text(json.dumps({"audit": {"kind": "mia", name: 1, "alpha": 2}}))
    assert offered("orch report ") == ["runs/plain-2_b"]
    assert offered("orch audit mia theirs.yaml --set ") == ["audit.kind=", "audit.alpha="]


def test_every_command_is_offered(offered: Callable[[str], list[str]]) -> None:
    assert [word for word in offered("orch ") if not word.startswith("-")] == list(COMMANDS)


def test_what_completion_and_help_know_is_what_the_kinds_have() -> None:
    assert KNOWN.keys() == KINDS.keys()
    for name, known in KNOWN.items():
        kind = kind_named(name)
        headline = kind.headline
        assert known.default_plan == kind.default_plan
        assert (known.summary, known.metrics) == (headline.summary, headline.metrics)
        assert (known.parts, known.accesses) == (headline.parts, tuple(headline.accesses))
    assert set(LISTS) == set(lists())


def test_help_of_audit_names_every_metric_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--help"]) == 0
    told = capsys.readouterr().out.replace("\n", " ")
    for known in KNOWN.values():
        assert all(f" {metric}" in told for metric in known.metrics)


@pytest.mark.long
def test_completion_imports_nothing_heavy() -> None:
    """In short: ``test_main.py``, of the help of all commands."""
    script = "\n".join(
        [
            "import os, sys",
            "from orchestrator.cli.main import main",
            "for line in ('audit apollo --set split.', 'audit mia --fail-above ', 'sweep ', 'audit gnq ', 'ls ', ''):",
            "    words = ['orch', *line.split(' ')]",
            "    os.environ |= {'_ORCH_COMPLETE': 'zsh_complete', 'COMP_WORDS': ' '.join(words),",
            "                   'COMP_CWORD': str(len(words) - 1)}",
            "    assert main([]) == 0",
            f"print([name for name in {HEAVY!r} if name in sys.modules])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "apollo-ablation" in done.stdout


def test_words_around_equals_signs_are_put_together() -> None:
    assert joined(["orch", "--set", "a", "=", "1", "b"]) == ["orch", "--set", "a=1", "b"]
    assert joined(["=", "a"]) == ["=", "a"]


def shell(place: Path, *command: str) -> Screen:
    """Start a shell that finds ``orch``."""
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return opened(command, place, 100, PATH=path, HOME=str(place), PS1="> ", INPUTRC="/dev/null")


def finish(screen: Screen) -> None:
    """Leave a shell."""
    screen.process.kill()  # an interactive shell takes no notice of less
    screen.end()


BY_BASH = (
    ("orch audit mia mine.yaml --set recipe.e", r"--set recipe\.epochs=3"),
    ("orch swe", "orch sweep "),
    ("orch audit apollo apollo-sm", "orch audit apollo apollo-smoke "),
    ("orch report --j", "orch report --junit "),
    ("orch audit mia --set recipe.epochs=", r"--set recipe\.epochs=\x07*3"),  # nothing to be added
    ("orch audit mia --target mi", r"--target mine\.yaml "),
)
"""Lines, and what the shell makes of them at a tab; each starts the program."""
BY_ZSH = (
    ("orch swe", "ep "),
    ("orch audit apollo apollo-sm", "oke "),
    ("orch audit mia mine.yaml --set recipe.e", "pochs=3"),
)
SOME = pytest.mark.parametrize("lines", [1, pytest.param(None, id="all", marks=pytest.mark.long)])
"""How many of these lines are typed."""


@pytest.mark.needs("bash")
@SOME
def test_bash_completes_what_is_typed(lines: int | None, place: Path) -> None:
    screen = shell(place, "bash", "--norc", "--noprofile", "-i")
    screen.type('eval "$(orch completion bash)"; echo rea""dy\n')
    screen.read("ready")
    for typed, completed in BY_BASH[:lines]:
        screen.type(f"{typed}\t" + ("3" if completed.endswith("3") else ""))
        screen.read(completed)
        screen.type("\x15")
    finish(screen)


@pytest.mark.needs("zsh")
@SOME
def test_zsh_completes_what_is_typed(lines: int | None, place: Path) -> None:
    screen = shell(place, "zsh", "-f", "-i")
    screen.type('autoload -Uz compinit; compinit -u -D; eval "$(orch completion zsh)"; echo rea""dy\n')
    screen.read("ready")
    for typed, completed in BY_ZSH[:lines]:
        screen.type(typed)
        screen.read(re_of(typed))
        screen.type("\t")
        screen.read(completed.removesuffix("3").rstrip())
        if completed.endswith("3"):
            screen.type("3")
            screen.read("3")
        screen.type("\x15")
    finish(screen)


@pytest.mark.needs("fish")
def test_fish_takes_the_script_and_completes(place: Path) -> None:
    script = 'orch completion fish | source; complete --do-complete "orch audit mia --fail-above auc"'
    environment = {
        **os.environ, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
        "HOME": str(place),
    }  # fmt: skip
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["auc=", "auc_low="]


def re_of(text: str) -> str:
    """Return a pattern of what a shell shows while ``text`` is typed, whose last letters it may print one by one."""
    return text[-2:].replace(".", r"\.")


@pytest.mark.parametrize(
    ("words", "code"), [(["completion", "bsh"], 2), (["completion"], 2), (["completion", "zsh"], 0)]
)
def test_a_shell_that_is_not_known_is_refused(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == code
    told = capsys.readouterr()
    assert ("did you mean 'bash'" in told.err) == (words[-1] == "bsh")
    assert ("compdef _orch_completion orch" in told.out) == (code == 0)
