from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cli.views.output import WIDE, print_table
from cli.views.output import _table as rich_table

if TYPE_CHECKING:
    import pytest


def test_nothing_in_a_table_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of a topic and causes are from whoever may write there."""
    print_table(["A\x1b[2J"], [["\x1b]0;title\x07 \u202egood caf\u00e9"]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["A\ufffd[2J", "\ufffd]0;title\ufffd \ufffdgood caf\u00e9"]


def test_a_table_for_a_file_is_the_one_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """As wide as it has to be: columns line up, also where a letter takes two places or a cell two lines."""
    rows: list[list[object]] = [
        ["delays", None, 12],
        ["\u6771\u4eac", "a\nlonger b", ""],
        ["", "c", "x" * 300],
    ]
    print_table(["TASK", "OWNER", "N"], rows)
    written = capsys.readouterr().out
    shown = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    Console(width=WIDE).print(rich_table(["TASK", "OWNER", "N"], *shown))
    assert written == capsys.readouterr().out
