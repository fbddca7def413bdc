"""`--help` of every command: an example that works, and options in one order."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
import pytest

from cli.main import sparkherd

if TYPE_CHECKING:
    from collections.abc import Iterator

CREDENTIALS = ["token_file", "tls_ca", "tls_cert", "tls_key"]
SHARED = ["wait", "timeout_s", "group", "client", *CREDENTIALS, "as_json"]
"""The options that commands share, in the order in which each lists them; its own come first."""
NOUNS = ("groups", "tasks", "workers", "sinks")


def leaves(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below `command` that does something itself."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        if (inner := command.get_command(context, name)) is not None:
            yield from leaves(inner, f"{path} {name}".strip())


COMMANDS = {path: leaf for path, leaf in leaves(sparkherd, "") if path.split()[0] in NOUNS}


def examples(command: click.Command) -> list[str]:
    """The lines under `Example:`."""
    return [line.strip() for line in (command.epilog or "").splitlines()[2:]]


@pytest.mark.parametrize("path", COMMANDS)
def test_the_examples_are_commands(path: str) -> None:
    """Each names the command it is about, and every option and argument in it is there."""
    lines = examples(COMMANDS[path])
    assert lines
    for line in lines:
        words = shlex.split(line.partition(" < ")[0])
        assert words[: 1 + len(path.split())] == ["sparkherd", *path.split()]
        COMMANDS[path].make_context(path, words[1 + len(path.split()) :])


@pytest.mark.parametrize("path", COMMANDS)
def test_options_come_in_one_order(path: str) -> None:
    """What commands share has one name and one place."""
    options = [each.name for each in COMMANDS[path].params if isinstance(each, click.Option)]
    shared = [name for name in options if name in SHARED]
    assert shared == [name for name in SHARED if name in shared] == options[len(options) - len(shared) :]
    assert {"client", *CREDENTIALS, "as_json"} <= set(options)
