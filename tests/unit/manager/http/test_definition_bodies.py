from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from manager.http.definition_bodies import read_definition

if TYPE_CHECKING:
    from types import FrameType

DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "noop"}}


async def test_what_is_long_is_read_in_another_thread_as_a_whole() -> None:
    """Checked and brought into its plain form there; the loop decodes and encodes what is short only."""
    long = {**DEFINITION, "labels": {f"l{number}": "x" for number in range(1000)}}
    assert await _json_done_here(long) == []
    assert await _json_done_here(DEFINITION) != []


async def _json_done_here(definition: dict[str, Any]) -> list[str]:
    """What the loop's own thread does with JSON while a definition is read."""
    document = msgspec.Raw(json.dumps(definition).encode())
    done = []

    def note(_: FrameType, event: str, call: Any) -> None:
        if event == "c_call" and call in (msgspec.json.decode, msgspec.json.encode):
            done.append(call.__name__)

    sys.setprofile(note)
    try:
        read = await read_definition(document)
    finally:
        sys.setprofile(None)
    assert json.loads(bytes(read.document)) == definition
    return done
