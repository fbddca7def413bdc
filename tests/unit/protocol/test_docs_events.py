"""docs/events.md and the types of events say the same."""

from __future__ import annotations

from pathlib import Path

import msgspec

from protocol.messages.events import Event, EventType

PAGE = (Path(__file__).parents[3] / "docs" / "events.md").read_text()
FIRST_CELLS = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| `")]


def test_every_type_has_its_line() -> None:
    """And there is no line for what is no type."""
    assert [f"`{kind}`" for kind in EventType] == FIRST_CELLS


def test_every_field_is_named() -> None:
    """Each with its own name in code."""
    assert [field.name for field in msgspec.structs.fields(Event) if f"`{field.name}`" not in PAGE] == []
