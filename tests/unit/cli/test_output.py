from __future__ import annotations

from typing import TYPE_CHECKING

from cli.views.output import print_table

if TYPE_CHECKING:
    import pytest


def test_nothing_in_a_table_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of a topic and causes are from whoever may write there."""
    print_table(["A\x1b[2J"], [["\x1b]0;title\x07 \u202egood caf\u00e9"]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["A\ufffd[2J", "\ufffd]0;title\ufffd \ufffdgood caf\u00e9"]
