"""Which slot a group belongs to: the same for every manager, of every version, for ever."""

from __future__ import annotations

from zlib import crc32


def slot_of(group: str, slots: int) -> int:
    """The slot of `group`, of `slots` there are; Python's own `hash` would differ from process to process."""
    return crc32(group.encode()) % slots
