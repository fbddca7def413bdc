from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from manager.cluster.slots import assign_slots, slot_of

NAMES = st.sampled_from("abcdefg")
MANAGERS = st.sets(NAMES, min_size=1)
HOLDERS = st.lists(st.none() | NAMES, min_size=1, max_size=80).map(lambda held: dict(enumerate(held)))


@given(MANAGERS, HOLDERS)
def test_every_slot_goes_to_somebody_evenly(managers: set[str], holders: dict[int, str | None]) -> None:
    """Whoever had what: all slots are dealt, to those who live, and nobody has two more than another."""
    dealt = assign_slots(managers, holders)
    assert dealt.keys() == holders.keys()
    counts = [Counter(dealt.values())[manager] for manager in managers]
    assert sum(counts) == len(holders)
    assert max(counts) - min(counts) <= 1


@given(MANAGERS, HOLDERS)
def test_no_slot_moves_that_need_not(managers: set[str], holders: dict[int, str | None]) -> None:
    """As many stay as an even sharing can let stay."""
    stay = sum(dealt == holders[slot] for slot, dealt in assign_slots(managers, holders).items())
    has = sorted((list(holders.values()).count(manager) for manager in managers), reverse=True)
    least, odd = divmod(len(holders), len(managers))
    assert stay == sum(min(n, least + (place < odd)) for place, n in enumerate(has))


@given(MANAGERS, HOLDERS)
def test_what_is_shared_stays_shared(managers: set[str], holders: dict[int, str | None]) -> None:
    """Looking again moves nothing."""
    dealt = assign_slots(managers, holders)
    assert assign_slots(managers, dict(dealt)) == dealt


@given(MANAGERS, HOLDERS)
def test_the_order_of_what_is_seen_does_not_matter(
    managers: set[str], holders: dict[int, str | None]
) -> None:
    """Each manager computes it for itself."""
    backwards = dict(reversed(holders.items()))
    assert assign_slots(sorted(managers, reverse=True), backwards) == assign_slots(sorted(managers), holders)


def test_nobody_lives() -> None:
    """Then there is nobody to deal to."""
    assert assign_slots((), {0: "a", 1: None}) == {}


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
