"""`sparkherd sinks`: the fenced formats that a definition's sink can have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec import Raw

from cli.client.admin_client import path_of
from cli.options.common import admin_options, example
from cli.views.output import print_json, print_table, printable
from protocol.messages.sinks import DescribedSink, SinkListResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.client.admin_client import AdminClient


@click.group("sinks")
def command() -> None:
    """See the fenced formats of sinks that a manager knows, and their options."""


@command.command("list", epilog=example("sparkherd sinks list"))
@admin_options
def list_sinks(client: AdminClient, *, as_json: bool) -> None:
    """List the fenced formats: those built in, and those that packages of the manager plug in."""
    path = path_of("sinks")
    if as_json:
        print_json(client.get(path, Raw))
        return
    print_table(
        ("FORMAT", "WORKER NEEDS", "OUTPUT MODES", "ALSO TAKES", "ABOUT"),
        (
            (sink.format, sink.needs, ",".join(sink.output_modes), _also(sink), sink.trouble or sink.about)
            for sink in client.get(path, SinkListResponse).sinks
        ),
    )


@command.command("describe", epilog=example("sparkherd sinks describe delta"))
@click.argument("name", metavar="FORMAT")
@admin_options
def describe(client: AdminClient, name: str, *, as_json: bool) -> None:
    """Show one fenced format and its options."""
    known = {sink.format: sink for sink in client.get(path_of("sinks"), SinkListResponse).sinks}
    if (sink := known.get(name)) is None:
        raise click.BadParameter(f"there is no fenced format {name}; there are {', '.join(known)}")
    if as_json:
        print_json(sink)
        return
    click.echo(printable(f"{name}: {sink.trouble or sink.about}"))
    print_table(("OPTION", "TYPE", "DEFAULT", "ABOUT"), _options(sink.options))


def _also(sink: DescribedSink) -> str | None:
    """What beside options means something to it, as it is called in a definition."""
    taken = {"table": sink.table, "partition_by": sink.partition_by, "new columns": sink.schema_evolution}
    return ", ".join(name for name, is_taken in taken.items() if is_taken) or None


def _options(schema: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        default = "required" if name in required else json.dumps(each.get("default"))
        yield name, _type(each), default, each.get("description")


def _type(schema: dict[str, Any]) -> str:
    """Of an option, in a word or its values; what is more involved is for `--json`."""
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return "|".join(_type(kind) for kind in schema["anyOf"] if kind != {"type": "null"})
    kind = str(schema.get("type", "object"))
    return f"{kind} of {_type(schema['items'])}" if kind == "array" and "items" in schema else kind
