"""`sparkherd completion`: has a shell complete commands, options and the names that a manager knows."""

from __future__ import annotations

from typing import Final

import click

from cli.options.common import example

_WHERE: Final = {
    "bash": 'add to ~/.bashrc:  eval "$(sparkherd completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(sparkherd completion zsh)"',
    "fish": "sparkherd completion fish > ~/.config/fish/completions/sparkherd.fish",
}


@click.command("completion", epilog=example('eval "$(sparkherd completion bash)"'))
@click.argument("shell", type=click.Choice(sorted(_WHERE)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands, options, groups, tasks and workers.

    For bash 4.4 or newer and for zsh, evaluate it in the shell's start file; for fish, write it into
    ~/.config/fish/completions/sparkherd.fish.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - the parsers of help need none

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(f"# {_WHERE[shell]}")
    click.echo(kind(ctx.find_root().command, {}, "sparkherd", "_SPARKHERD_COMPLETE").source())
