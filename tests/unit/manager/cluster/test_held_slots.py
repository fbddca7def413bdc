from __future__ import annotations

import pytest

from manager.cluster.held_slots import NEVER, HeldSlots, Moves, SlotState
from manager.cluster.slots import slot_of
from manager.storage.cluster_state import ClusterState, ManagerIdentity, Peer, Slot

SLOTS = 4
LEASE_MS = 3000
A, B, C = (ManagerIdentity(id=name, incarnation=f"{name}-1", url=f"http://{name}") for name in "abc")
Identities = tuple[ManagerIdentity, ...]
GROUPS = {slot: next(f"g{n}" for n in range(100) if slot_of(f"g{n}", SLOTS) == slot) for slot in range(SLOTS)}


def seen(
    *holders: tuple[int, str | None],
    living: Identities = (A, B),
    dead: Identities = (),
) -> ClusterState:
    """A view in which slot n has the n-th epoch and holder."""
    peers = [Peer(identity, 0, LEASE_MS) for identity in living]
    peers += [Peer(identity, 0, 0) for identity in dead]
    return ClusterState(
        tuple(peers), tuple(Slot(n, epoch, holder) for n, (epoch, holder) in enumerate(holders))
    )


FREE = (0, None)


@pytest.fixture
def leases() -> HeldSlots:
    return HeldSlots(A, SLOTS, LEASE_MS)


@pytest.fixture
def owner(leases: HeldSlots) -> HeldSlots:
    """A has slots 0 and 1 under epoch 5, renewed at 1000; B has the others."""
    leases.renewed(1000, seen((4, A.incarnation), (4, A.incarnation), (7, B.incarnation), (7, B.incarnation)))
    leases.took({0: 5, 1: 5}, leases.term)
    leases.loaded((0, 1))
    return leases


def after(
    owner: HeldSlots,
    *holders: tuple[int, str | None],
    sent_at: int = 1500,
    **more: Identities,
) -> Moves:
    return owner.renewed(sent_at, seen(*holders, **more))


THEIRS = ((7, B.incarnation), (7, B.incarnation))
OURS = ((5, A.incarnation), (5, A.incarnation))


def test_free_slots_are_shared(leases: HeldSlots) -> None:
    """Of four with two managers, two are taken, and nothing is served before it is loaded."""
    moves = leases.renewed(1000, seen(FREE, FREE, FREE, FREE))
    assert moves == Moves((), (0, 1), {})
    leases.took({0: 1, 1: 1}, leases.term)
    assert leases.in_state(SlotState.LOADING) == (0, 1)
    assert not leases.serves(GROUPS[0])
    leases.loaded((0, 1))
    assert leases.serves(GROUPS[0])
    assert not leases.serves(GROUPS[2])


def test_the_lease_is_counted_from_before_the_renewal_was_sent(owner: HeldSlots) -> None:
    """However long its answer took."""
    assert owner.lapses_at == 1000 + LEASE_MS
    after(owner, *OURS, *THEIRS, sent_at=2200)
    assert owner.lapses_at == 2200 + LEASE_MS


def test_a_lapsed_lease_leaves_nothing(owner: HeldSlots) -> None:
    """Not served, not written to; and who has it is not known."""
    assert owner.lapse() == (0, 1)
    assert not owner.serves(GROUPS[0])
    assert owner.epochs([GROUPS[0], GROUPS[1]]) == ({}, (0, 1))


def test_what_was_asked_for_before_the_lapse_comes_to_nothing(owner: HeldSlots) -> None:
    """The answer of a taking that a freeze lay in is worthless: others may have taken since."""
    term = owner.term
    owner.lapse()
    owner.took({2: 9}, term)
    assert owner.state(2) is None


def test_own_slots_that_nobody_took_are_taken_again(owner: HeldSlots) -> None:
    """After a lapse they still carry our name: they are taken under a new epoch, not gone on with."""
    owner.lapse()
    assert after(owner, *OURS, *THEIRS, sent_at=9000) == Moves((), (0, 1), {})


def test_slots_of_the_dead_are_taken(owner: HeldSlots) -> None:
    """By whose lease the database says has ended."""
    assert after(owner, *OURS, *THEIRS, living=(A,), dead=(B,)) == Moves((), (2, 3), {})


def test_slots_of_the_living_are_not(owner: HeldSlots) -> None:
    """Nothing moves when all is even."""
    assert after(owner, *OURS, *THEIRS) == Moves((), (), {})


def test_a_newcomer_is_given_its_share(owner: HeldSlots) -> None:
    """One slot of four, from whoever has one too many."""
    owner.took({2: 8}, owner.term)
    owner.loaded((2,))
    moves = after(owner, *OURS, (8, A.incarnation), (7, B.incarnation), living=(A, B, C))
    assert moves == Moves((), (), {2: C.incarnation})


def test_what_is_closed_is_written_but_not_served(owner: HeldSlots) -> None:
    """And whoever asks is sent to the heir."""
    assert owner.close({1: B.incarnation}) == {1: 5}
    assert not owner.serves(GROUPS[1])
    assert owner.epochs([GROUPS[1]]) == ({1: 5}, ())
    coordinator = owner.coordinator(1, 1200)
    assert coordinator is not None
    assert coordinator.id == "b"
    owner.drop((1,))
    assert owner.epochs([GROUPS[1]]) == ({}, (1,))


def test_an_overtaken_slot_is_lost(owner: HeldSlots) -> None:
    """Another has it under a higher epoch: the lease was thought to have ended."""
    moves = after(owner, (6, B.incarnation), (5, A.incarnation), *THEIRS)
    assert moves.lost == (0,)
    assert not owner.serves(GROUPS[0])
    coordinator = owner.coordinator(0, 1600)
    assert coordinator is not None
    assert coordinator.id == "b"


def test_an_old_view_takes_nothing_away(owner: HeldSlots) -> None:
    """It was read before the slot was taken, and says that another has it."""
    assert after(owner, (4, B.incarnation), (4, None), *THEIRS).lost == ()
    assert owner.serves(GROUPS[0])
    assert owner.serves(GROUPS[1])


def test_epochs_only_grow(owner: HeldSlots) -> None:
    """An answer that comes late does not set one back; slots that were not kept are lost."""
    assert owner.retook((0, 1), {0: 6}) == (1,)
    owner.retook((0,), {0: 5})
    assert owner.epochs([GROUPS[0]]) == ({0: 6}, ())
    assert owner.state(1) is None


def test_nobody_is_known_to_have_what_was_seen_too_long_ago(owner: HeldSlots) -> None:
    """A manager without its database sends nobody anywhere."""
    assert owner.coordinator(2, 1000 + LEASE_MS - 1) is not None
    assert owner.coordinator(2, 1000 + LEASE_MS) is None


def test_whoever_goes_leaves_to_those_who_stay(owner: HeldSlots) -> None:
    """Evenly; to nobody if nobody else lives."""
    assert owner.leave() == {0: B.incarnation, 1: B.incarnation}
    after(owner, *OURS, *THEIRS, living=(A,), dead=(B,))
    assert owner.leave() == {0: None, 1: None}


def test_a_lease_without_end_never_lapses() -> None:
    """Of the only manager of a database."""
    alone = HeldSlots(A, SLOTS, None)
    alone.took(dict.fromkeys(range(SLOTS), 1), alone.term)
    alone.loaded(range(SLOTS))
    assert alone.lapses_at == NEVER
    assert all(alone.serves(group) for group in GROUPS.values())
    coordinator = alone.coordinator(0, 10**12)
    assert coordinator is not None
    assert coordinator.id == "a"
