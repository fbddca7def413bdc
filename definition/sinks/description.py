"""Fenced formats as people and programs are shown them: what `GET /v1/sinks` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from definition.sinks.base import Supports
from definition.sinks.plugged import as_sent
from definition.sinks.registry import UnusableFormat, fenced_formats, refused_names, sink_format
from protocol.messages.sinks import DescribedSink
from telemetry.foreign_errors import FAILURES, first_line_of

if TYPE_CHECKING:
    from definition.sinks.base import SinkFormat


def described_sinks() -> tuple[DescribedSink, ...]:
    """Every fenced format that is installed here, by name; one that cannot be used says why.

    So does a name that a package offers and does not get.
    """
    known = ((name, sink_format(name)) for name in fenced_formats())
    fenced = (_described(name, each) for name, each in known if each is not None)
    refused = (_in_trouble(name, why) for name, why in refused_names().items())
    return tuple(sorted((*fenced, *refused), key=lambda each: each.format))


def _described(name: str, known: SinkFormat) -> DescribedSink:
    """What a client can read for certain: one that cannot be described must not take the others with it."""
    if isinstance(known, UnusableFormat):
        return _in_trouble(name, known.why)
    try:
        schema: dict[str, Any] = as_sent(_schema(known), dict[str, Any])
    except FAILURES as error:
        return _in_trouble(name, f"its options have no JSON Schema: {first_line_of(error)}")
    return _shown(name, known.supports, about=_first_line(known), needs=known.needs, options=schema)


def _in_trouble(name: str, why: str) -> DescribedSink:
    return _shown(name, Supports(), about="", needs=name, options={}, trouble=why)


def _shown(name: str, supports: Supports, **more: Any) -> DescribedSink:
    return DescribedSink(
        format=name,
        output_modes=supports.output_modes,
        table=supports.table,
        partition_by=supports.partition_by,
        schema_evolution=supports.schema_evolution,
        **more,
    )


def _schema(known: SinkFormat) -> dict[str, Any]:
    """The JSON Schema of its options, in one piece; raises whatever the types of a package's options do."""
    found = msgspec.json.schema(known.options)
    others = found.pop("$defs")
    schema: dict[str, Any] = others.pop(found["$ref"].rpartition("/")[2])
    return schema | ({"$defs": others} if others else {})


def _first_line(known: SinkFormat) -> str:
    return (type(known).__doc__ or "").strip().partition("\n")[0].rstrip(".")
