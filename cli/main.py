"""The `sparkherd` command. Exit codes: 0 done, 1 failed, 2 used wrongly or misconfigured."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from cli.exit_codes import DONE, FAILED, INTERRUPTED, USAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS: Final = {
    "manager": ("commands.daemons:manager", "Run a manager: groups, their tasks, and who runs what."),
    "worker": ("commands.daemons:worker", "Run a worker: one Spark session, and the queries it is given."),
    "run": ("commands.run:command", "Run the tasks of a file in this process, without a manager."),
    "groups": ("commands.groups:command", "See and steer groups."),
    "tasks": ("commands.tasks:command", "Create, see and steer tasks."),
    "transfers": ("commands.transfers:command", "See and cancel transfers of tasks between groups."),
    "workers": ("commands.workers:command", "See, drain and remove the workers of a group."),
    "managers": ("commands.managers:command", "See the managers of a cluster."),
    "sinks": ("commands.sinks:command", "See the fenced sinks that tasks can write to, and their options."),
    "alarms": (
        "commands.alarms:command",
        "See, silence and acknowledge alarms, by which rules they ring, and who is told.",
    ),
    "events": ("commands.events:command", "See what happened, and what happens."),
    "audit": ("commands.audit:command", "See what admins did, and what was tried."),
    "db": ("commands.db:command", "Look at, and bring up to date, the schema of a manager's database."),
    "tokens": ("commands.tokens:command", "Make, list and revoke the tokens of workers and people."),
    "doctor": ("doctor.command:command", "Look at what a manager or a worker would need here."),
    "completion": ("commands.completion:command", "Print what makes a shell complete commands and names."),
    "demo": ("demo.command:command", "Watch a herd lose a worker and no row, on 336,776 real flights."),
}
"""Where in `cli` each is, and what the list of commands says of it."""


class _LazyGroup(click.Group):
    """Imports a command only when it is used, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(
    cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="sparkherd", prog_name="sparkherd")
def sparkherd() -> None:
    """Keeps Spark streaming queries running on a herd of managers and workers.

    Exit codes: 0 done, 1 failed, 2 used wrongly or misconfigured; docs/command-line.md has them all.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; errors are one line on stderr."""
    sys.exit(run(args))


def run(args: Sequence[str] | None) -> int:
    """Run the command line; returns its exit code."""
    try:
        return _exit_code(sparkherd.main(args=args, prog_name="sparkherd", standalone_mode=False))
    except click.ClickException as error:
        return _click_error(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        if (code := _own_error(error)) is None:
            raise
        return code


def _own_error(error: Exception) -> int | None:
    """The exit code of an error of ours, which is told; their classes are loaded when there is one."""
    from cli.client.admin_client import UnreachableError  # noqa: PLC0415 - half of what `--help` would load
    from protocol.errors import RefusedError, StartupError  # noqa: PLC0415 - the same

    if isinstance(error, StartupError):
        return _complain(str(error), USAGE)
    if isinstance(error, RefusedError):
        return _complain(f"{error.failure.code.name}: {error}", FAILED)
    return _complain(str(error), FAILED) if isinstance(error, UnreachableError) else None


def _click_error(error: click.ClickException) -> int:
    """One line, unless the error is the help that a group without a command shows."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return error.exit_code
    context = error.ctx if isinstance(error, click.UsageError) else None
    help_hint = f" (see `{context.command_path} --help`)" if context else ""
    return _complain(error.format_message() + help_hint, error.exit_code)


def _exit_code(result: Any) -> int:
    """What a command returned, if it was an exit code; commands that return nothing are done."""
    return result if isinstance(result, int) else DONE


def _complain(message: str, code: int) -> int:
    from telemetry.secrets import scrub  # noqa: PLC0415 - most commands have nothing to complain about

    one_line = scrub(" ".join(message.split()))
    click.echo(f"sparkherd: {one_line}", err=True)
    return code
