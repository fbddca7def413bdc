from __future__ import annotations

from collections import Counter

from manager.cluster.slots import slot_of


def test_a_group_has_its_slot_for_ever() -> None:
    """Written down: another number would lose every group of a running cluster."""
    groups = ("flights", "readings", "a", "x" * 249)
    assert [slot_of(group, 64) for group in groups] == [42, 49, 3, 7]
    assert [slot_of(group, 7) for group in groups] == [0, 4, 4, 2]


def test_groups_spread_over_the_slots() -> None:
    """A thousand groups: no slot has more than three times its share."""
    spread = Counter(slot_of(f"group-{n}", 64) for n in range(1000))
    assert len(spread) == 64
    assert max(spread.values()) < 3 * 1000 / 64
