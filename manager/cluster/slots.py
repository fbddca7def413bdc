"""Which slot a group belongs to, and which manager should have which slots."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def slot_of(group: str, slots: int) -> int:
    """The slot of `group`, of `slots` there are: the same for every manager, of every version, for ever.

    Python's own `hash` would differ from process to process.
    """
    return crc32(group.encode()) % slots


def assign_slots(managers: Collection[str], holders: Mapping[int, str | None]) -> dict[int, str]:
    """Even within one, with as few moves as that takes; the same for everybody who sees the same.

    Args:
        managers: those who live; nothing is given to others.
        holders: who has each slot now.

    Returns:
        A manager for each slot, of which none has two more than another. Empty when nobody lives.
    """
    room = _quotas(managers, holders)
    dealt: dict[int, str] = {}
    for slot, holder in sorted(holders.items()):
        if holder is not None and room.get(holder):
            dealt[slot] = holder
            room[holder] -= 1
    takers = (manager for manager in sorted(room) for _ in range(room[manager]))
    return dealt | dict(zip(sorted(holders.keys() - dealt.keys()), takers, strict=False))


def _quotas(managers: Collection[str], holders: Mapping[int, str | None]) -> dict[str, int]:
    """How many slots each manager may have: whoever has most already has the odd ones."""
    if not managers:
        return {}
    has = Counter(holders.values())
    least, odd = divmod(len(holders), len(managers))
    by_wealth = sorted(managers, key=lambda manager: (-has[manager], manager))
    return {manager: least + (place < odd) for place, manager in enumerate(by_wealth)}
