from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from manager.cluster.sharing import share

NAMES = st.sampled_from("abcdefg")
MANAGERS = st.sets(NAMES, min_size=1)
HOLDERS = st.lists(st.none() | NAMES, min_size=1, max_size=80).map(lambda held: dict(enumerate(held)))


@given(MANAGERS, HOLDERS)
def test_every_slot_goes_to_somebody_evenly(managers: set[str], holders: dict[int, str | None]) -> None:
    """Whoever had what: all slots are dealt, to those who live, and nobody has two more than another."""
    dealt = share(managers, holders)
    assert dealt.keys() == holders.keys()
    counts = [Counter(dealt.values())[manager] for manager in managers]
    assert sum(counts) == len(holders)
    assert max(counts) - min(counts) <= 1


@given(MANAGERS, HOLDERS)
def test_no_slot_moves_that_need_not(managers: set[str], holders: dict[int, str | None]) -> None:
    """As many stay as an even sharing can let stay."""
    stay = sum(dealt == holders[slot] for slot, dealt in share(managers, holders).items())
    has = sorted((list(holders.values()).count(manager) for manager in managers), reverse=True)
    least, odd = divmod(len(holders), len(managers))
    assert stay == sum(min(n, least + (place < odd)) for place, n in enumerate(has))


@given(MANAGERS, HOLDERS)
def test_what_is_shared_stays_shared(managers: set[str], holders: dict[int, str | None]) -> None:
    """Looking again moves nothing."""
    dealt = share(managers, holders)
    assert share(managers, dict(dealt)) == dealt


@given(MANAGERS, HOLDERS)
def test_the_order_of_what_is_seen_does_not_matter(
    managers: set[str], holders: dict[int, str | None]
) -> None:
    """Each manager computes it for itself."""
    backwards = dict(reversed(holders.items()))
    assert share(sorted(managers, reverse=True), backwards) == share(sorted(managers), holders)


def test_nobody_lives() -> None:
    """Then there is nobody to deal to."""
    assert share((), {0: "a", 1: None}) == {}
