"""Commands and documents in the prose are such as the program takes."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from cli.main import sparkherd
from definition.document import parse_definition
from tests.unit.docs.pages import PAGES, ROOT, Block, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

SHELL = re.compile(r"(?:^|(?<=[|;&(]))\s*(?:\$ )?(?:\w+=\S* )*(sparkherd [^|;&)\n]*)", re.MULTILINE)
SYNOPSIS = re.compile(r"\.\.\.|\[|\||…")
DAEMON = re.compile(r"^ExecStart=\S*/(sparkherd .*)$", re.MULTILINE)
ALL = [block for page in PAGES for block in blocks(page)]


def commands() -> Iterator[tuple[str, str]]:
    """Every call of `sparkherd` in the prose and in the files to deploy it with."""
    for block in ALL:
        text = block.text.replace("\\\n", " ")
        yield from ((block.page, line) for line in SHELL.findall(text) if not SYNOPSIS.search(line))
    for unit in sorted(ROOT.glob("deploy/systemd/*.service")):
        yield from ((unit.name, line) for line in DAEMON.findall(unit.read_text()))
    compose = yaml.safe_load((ROOT / "deploy" / "docker" / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        if name != "postgres":
            yield "compose.yaml", shlex.join(["sparkherd", service["build"]["target"], *service["command"]])


@pytest.mark.parametrize(("place", "line"), sorted(set(commands())))
def test_commands_and_their_options_exist(place: str, line: str) -> None:
    """As far as the words go; nothing is run."""
    del place
    words = list(takewhile(lambda word: word[0] not in ">2#", shlex.split(line, comments=True)[1:]))
    command: click.Command = sparkherd
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert given <= known | {"--help", "--version"}


def documents(wanted: str) -> list[Block]:
    return [block for block in ALL if re.match(wanted, block.text)]


@pytest.mark.parametrize("block", documents(r"\{\""), ids=lambda block: block.page)
def test_json_is_json(block: Block) -> None:
    """A document, or one a line; an ellipsis stands for more of the same."""
    text = re.sub(r"(, )?(\.\.\.|…)", "", block.text)
    assert [json.loads(line) for line in (text.splitlines() if "\n{" in text else [text])]


@pytest.mark.parametrize("block", documents(r"(?s)group:.*\ntasks:\n"), ids=lambda block: block.page)
def test_task_files_are_yaml_and_their_definitions_parse(block: Block) -> None:
    """Where a definition is given in full."""
    definitions = [
        task["definition"] for task in yaml.safe_load(block.text)["tasks"] if isinstance(task, dict)
    ]
    for definition in definitions:
        if isinstance(definition, dict) and ... not in definition and definition != {"...": None}:
            parse_definition(json.dumps(definition).encode())


@pytest.mark.parametrize("block", documents(r"\[(manager|worker)"), ids=lambda block: block.page)
def test_settings_files_are_toml(block: Block) -> None:
    """With tables for the daemons only."""
    tables: dict[str, Any] = tomllib.loads(block.text)
    assert tables.keys() <= {"manager", "worker"}
