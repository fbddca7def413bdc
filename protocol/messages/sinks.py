"""The fenced formats of sinks that a manager knows (protocol §5, Admin endpoints)."""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.messages.base import Response


class DescribedSink(msgspec.Struct, frozen=True, kw_only=True):
    """A value of `sink.format` that is fenced, and what goes with it in a definition.

    Args:
        format: its name.
        about: one line for people.
        needs: the format that a worker must have for it; None if every worker can write it.
        output_modes: of queries; options may narrow that down.
        table: whether `sink.table` may name where rows go.
        partition_by: whether `sink.partition_by` means something.
        schema_evolution: whether an option lets it add columns to what is there.
        options: JSON Schema of `sink.options`, which are checked further when a definition is.
        trouble: why it cannot be used, in one line; None if it can.
    """

    format: str
    about: str
    needs: str | None
    output_modes: tuple[str, ...]
    table: bool
    partition_by: bool
    schema_evolution: bool
    options: dict[str, Any]
    trouble: str | None = None


class SinkListResponse(Response, frozen=True, kw_only=True):
    """All of them, by name: those built in, and those that packages here plug in."""

    sinks: tuple[DescribedSink, ...]
