"""Fenced formats as people and programs are shown them: what `GET /v1/sinks` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from definition.sinks.registry import UnusableFormat, fenced_formats, sink_format
from protocol.messages.sinks import DescribedSink

if TYPE_CHECKING:
    from definition.sinks.base import SinkFormat


def described_sinks() -> tuple[DescribedSink, ...]:
    """Every fenced format that is installed here, by name; one that cannot be used says why."""
    known = ((name, sink_format(name)) for name in fenced_formats())
    return tuple(_described(name, each) for name, each in known if each is not None)


def _described(name: str, known: SinkFormat) -> DescribedSink:
    supports = known.supports
    schema, trouble = _schema(known)
    return DescribedSink(
        format=name,
        about=_first_line(known) if trouble is None else "",
        needs=known.needs if trouble is None else name,
        output_modes=supports.output_modes,
        table=supports.table,
        partition_by=supports.partition_by,
        schema_evolution=supports.schema_evolution,
        options=schema,
        trouble=trouble,
    )


def _schema(known: SinkFormat) -> tuple[dict[str, Any], str | None]:
    """The JSON Schema of its options, in one piece, and why it cannot be used."""
    if isinstance(known, UnusableFormat):
        return {}, known.why
    try:
        found = msgspec.json.schema(known.options)
        msgspec.json.encode(found)
    except Exception as error:  # noqa: BLE001 - whatever the types of a package's options raise
        return {}, f"its options have no JSON Schema: {error}".partition("\n")[0]
    others = found.pop("$defs")
    schema: dict[str, Any] = others.pop(found["$ref"].rpartition("/")[2])
    return schema | ({"$defs": others} if others else {}), None


def _first_line(known: SinkFormat) -> str:
    return (type(known).__doc__ or "").strip().partition("\n")[0].rstrip(".")
