"""Completion scripts of shells, and what they are answered; click's, mended for words that hold an equals sign."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_ORCH_COMPLETE"


class Bash(BashComplete):
    """Bash takes ``a=b`` for three words, and sets a space behind what it completes, also behind ``a=``."""

    source_template = BashComplete.source_template.replace(
        "    return 0\n", "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n    return 0\n", 1
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is typed, and that word."""
        words, incomplete = super().get_completion_args()
        if incomplete and "=" in (incomplete, *words[-1:]):  # the cursor is within a word that bash took apart
            *words, incomplete = joined([*words, incomplete])
            return words, incomplete
        return joined(words), incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return what completes the typed word: of values with an equals sign only what bash takes for that word."""
        value = incomplete.partition("=")[2] if incomplete.startswith("-") else incomplete
        before = value[: value.rfind("=") + 1]
        found = super().get_completions(args, incomplete)
        if not before:
            return found
        values = (item.value.removeprefix(before) for item in found if item.value.startswith(before))
        return [CompletionItem(each) for each in values if each]


class Zsh(ZshComplete):
    """Zsh sets a space behind what it completes, also behind ``a=``."""

    source_template = ZshComplete.source_template.replace(
        "        compadd -U -V unsorted -a completions\n",
        "        compadd -U -V unsorted -- ${completions:#*=}\n"
        "        compadd -U -S '' -V unsorted -- ${(M)completions:#*=}\n",
        1,
    )


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": FishComplete}


def joined(words: Sequence[str]) -> list[str]:
    """Return words with those put together again that an equals sign stands between."""
    found: list[str] = []
    for word in words:
        if found and (word == "=" or (found[-1].endswith("=") and len(found[-1]) > 1)):
            found[-1] += word
        else:
            found.append(word)
    return found


def completion_of(shell: str, group: click.Group) -> ShellComplete:
    """Return what completes the commands of ``group`` in a shell."""
    return SHELLS[shell](group, {}, "orch", VARIABLE)


def answer(instruction: str, group: click.Group) -> str:
    """Return what a shell is told that asks by ``VARIABLE``, e.g. ``bash_complete``, ``zsh_source``; "" for others."""
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what not in ("complete", "source"):
        return ""
    completing = completion_of(shell, group)
    return completing.source() if what == "source" else completing.complete()
