"""docs/command-line.md, docs/tasks.md and the command say the same."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from cli import exit_codes
from cli.main import sparkherd
from cli.task_files.reader import read_task_file
from definition.check import check_definition
from protocol.messages.base import encode_opaque
from tests.unit.cli.test_help_pages import COMMANDS
from worker.host import EXIT_CODES
from worker.membership.events import Reason

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "command-line.md").read_text()


def test_every_exit_code_is_documented() -> None:
    """Code and meaning, in one table, and none that there is not."""
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == exit_codes.MEANINGS


def test_a_worker_s_exit_codes_are_among_them() -> None:
    """The daemon has its own table, for it knows nothing of the command line."""
    assert EXIT_CODES == {
        Reason.ASKED: exit_codes.DONE,
        Reason.FENCED: exit_codes.FENCED,
        Reason.ENGINE_DIED: exit_codes.ENGINE_DIED,
        Reason.REFUSED: exit_codes.REFUSED,
    }


@pytest.mark.parametrize(
    "path", [path for path in COMMANDS if path.split()[0] in {"groups", "workers", "sinks"}]
)
def test_every_command_is_in_the_overview(path: str) -> None:
    """One that is missing there will not be found."""
    noun, verb = path.split()
    line = next(line for line in PAGE.splitlines() if line.strip().startswith(f"sparkherd {noun} "))
    assert verb in line.replace("|", " ").split()
    assert noun in sparkherd.list_commands(
        sparkherd.make_context("sparkherd", ["--help"], resilient_parsing=True)
    )


def test_the_documented_for_each_is_a_good_file(tmp_path: Path) -> None:
    """It expands to what the text says, and every definition is in order."""
    page = (DOCS / "tasks.md").read_text()
    block = page[page.index("    x-delays") : page.index("Placeholders may stand")]
    path = tmp_path / "tasks.yaml"
    path.write_text(dedent(block))
    tasks = {entry.task: entry.definition for entry in read_task_file(path).tasks}
    assert [name for name in tasks if name.startswith("delays")] == [
        f"delays-{carrier}-{year}" for carrier in ("AA", "UA") for year in (2012, 2013)
    ]
    assert tasks["late-AA"]["weight"] == 2.0
    assert tasks["delays-UA-2013"]["source"]["format"] == "json"
    for definition in tasks.values():
        assert not isinstance(check_definition(encode_opaque(definition)), tuple)
