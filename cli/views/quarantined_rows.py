"""Rows that a task has put aside, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from cli.views.output import local_time, print_table, printable

if TYPE_CHECKING:
    from protocol.messages.quarantine import QuarantinedRow, QuarantineResponse

MOST_SHOWN: Final = 80
"""Characters of a row in a table; `show` has all that the worker tells."""


def show_list(found: QuarantineResponse) -> None:
    """A table of them, and how many there are."""
    if found.rows:
        print_table(("ID", "AT", "REASON", "NAME", "FROM", "ROW"), map(_line, found.rows))
        click.echo()
    click.echo(f"{len(found.rows)} of {found.total} rows")
    _notes(found)


def _line(row: QuarantinedRow) -> tuple[object, ...]:
    raw = " ".join(row.raw.split())
    shown = raw if len(raw) <= MOST_SHOWN else raw[: MOST_SHOWN - 1] + "…"
    return row.id, local_time(row.at_ms), row.reason, row.name, _origin(row), shown


def _origin(row: QuarantinedRow) -> str | None:
    """As `topic=delays partition=2 offset=1034`; None if it is not known."""
    return " ".join(f"{name}={value}" for name, value in row.origin.items() if value is not None) or None


def show_row(found: QuarantineResponse) -> None:
    """All that is known of one."""
    for row in found.rows:
        told = {
            "id": row.id,
            "at": local_time(row.at_ms),
            "batch": row.batch_id,
            "token": row.token,
            "reason": row.reason,
            "name": row.name,
            "from": _origin(row),
            "error": row.error,
        }
        for name, value in told.items():
            click.echo(printable(f"{name + ':':8} {'-' if value is None else value}"))
        encoding = "" if row.encoding == "utf-8" else f", {row.encoding}"
        click.echo(f"\n{row.form}{encoding}:\n{printable(_pretty(row))}")
    _notes(found)


def _pretty(row: QuarantinedRow) -> str:
    """A row of the query's result as a person reads JSON, unless it was cut."""
    try:
        return json.dumps(json.loads(row.raw), indent=2, ensure_ascii=False) if row.form == "row" else row.raw
    except ValueError:
        return row.raw


def show_change(task: str, done: QuarantineResponse) -> None:
    """What became of the rows that were meant."""
    counts = {"played again": done.replayed, "discarded": done.discarded, "stayed": done.stayed}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    click.echo(f"{task}: {told or 'there are no such rows'}")
    _notes(done)


def _notes(found: QuarantineResponse) -> None:
    for note in found.notes:
        click.echo(printable(f"note: {note}"))
