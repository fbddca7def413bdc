"""What a worker has found of a definition, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cli.views.output import print_table, printable

if TYPE_CHECKING:
    from protocol.messages.checks import CheckResponse


def show_result(task: str, found: CheckResponse) -> None:
    """Columns, rows and notes; problems are told elsewhere."""
    count = len(found.problems)
    click.echo(f"{task}: {count or 'no'} problem{'s' * (count != 1)}, by {found.worker}")
    if found.columns:
        click.echo()
        print_table(("COLUMN", "TYPE"), ((each.name, each.type) for each in found.columns))
    if found.columns and found.rows:
        click.echo()
        print_table(
            [each.name for each in found.columns], ([_cell(value) for value in row] for row in found.rows)
        )
    if found.notes:
        click.echo()
    for note in found.notes:
        click.echo(printable(f"note: {note.path}: {note.message}" if note.path else f"note: {note.message}"))
    click.echo()


def _cell(value: Any) -> str:
    """A text as it is, without its line breaks; anything else as JSON."""
    return " ".join(value.splitlines()) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
