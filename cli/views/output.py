"""What commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table

WIDE: Final = 10_000
"""Columns of what nobody looks at on a terminal: nothing is wrapped for `grep`."""


def print_json(value: Any) -> None:
    """`value` as one indented JSON document."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def print_json_line(value: Any) -> None:
    """`value` as JSON on one line, of a stream of them."""
    click.echo(msgspec.json.encode(value))


def print_yaml(value: Any) -> None:
    """`value` as a person would write it into a file: texts of several lines as they are."""
    import yaml  # noqa: PLC0415 - only who prints it pays for it

    class Dumper(yaml.SafeDumper):
        """Has a representer of its own."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, represent)
    click.echo(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=WIDE), nl=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """`rows` under `columns`; None is shown as `-`."""
    from rich.console import Console  # noqa: PLC0415 - only who prints a table pays for it

    cells = [[printable(column) for column in columns], *([_in_words(cell) for cell in row] for row in rows)]
    console = Console(highlight=False, markup=False)
    if console.is_terminal:
        console.print(_table(*cells))
    else:
        click.echo("\n".join(_aligned(cells)))


def _in_words(cell: object) -> str:
    return "-" if cell is None else printable(str(cell))


def _table(columns: Sequence[str], *rows: Sequence[str]) -> Table:
    """For a terminal: what is too long goes on in the next line of its column."""
    from rich.table import Table  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """For `grep`: the same, but as wide as it has to be. Rich takes a minute for a hundred thousand rows."""
    from rich.cells import cell_len  # noqa: PLC0415 - as above

    lines = [line for row in rows for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(padded)


def printable(text: str) -> str:
    """`text` without what would steer a terminal: it may be from whoever may write to a topic."""
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def ago(then_ms: int) -> str:
    """How long ago `then_ms` (since 1970) was, as `4s`, `3m`, `2h` or `5d`."""
    seconds = max(int(time.time() - then_ms / 1000), 0)
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def local_time(at_ms: int) -> str:
    """`at_ms` (since 1970) as date and time of where the command runs."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


def tell(result: dict[str, object], sentence: str, *, as_json: bool) -> None:
    """What a command has done: a sentence for people, `result` for scripts."""
    if as_json:
        print_json(result)
    else:
        click.echo(sentence)
