"""``orch completion``: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import click

from audits.errors import BadInput, did_you_mean
from orchestrator.cli.lines import say
from orchestrator.cli.shells import SHELLS, completion_of


def shells(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a shell."""
    return [name for name in SHELLS if name.startswith(incomplete)]


@click.command("completion")
@click.argument("shell", shell_complete=shells)
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script by which SHELL (bash, zsh, fish) completes commands, options, plans, sweeps, metrics and fields.

    \b
    bash: eval "$(orch completion bash)" in ~/.bashrc
    zsh:  eval "$(orch completion zsh)" in ~/.zshrc, behind compinit
    fish: orch completion fish > ~/.config/fish/completions/orch.fish
    """
    if shell not in SHELLS:
        raise BadInput(f"no completion for {shell!r}{did_you_mean(shell, SHELLS)}; shells: {', '.join(SHELLS)}")
    group = ctx.find_root().command
    assert isinstance(group, click.Group)
    say(completion_of(shell, group).source())
