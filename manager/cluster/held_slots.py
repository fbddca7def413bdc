"""What this manager may answer for, and until when: slots taken, kept, closed, handed over and lost.

A lease is *taken* by the database's clock, whatever the clocks of the managers say, and *given up* by the
local monotonic clock, counted from before the renewal was sent. So a manager has always stopped before
another may begin, unless a clock runs fast by more than the time a renewal travels; then the epochs hold.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from manager.cluster.slots import assign_slots, slot_of
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manager.storage.cluster_state import ClusterState, ManagerIdentity

NEVER = sys.maxsize
"""When a lease lapses that has no end."""


class SlotState(Enum):
    """LOADING: ours, its groups are being read. SERVING. CLOSING: what was decided is still being stored."""

    LOADING = "loading"
    SERVING = "serving"
    CLOSING = "closing"


@dataclass(slots=True)
class Held:
    """A slot of ours; `epoch` goes with every write, `taken_up` are its groups so far while it is LOADING."""

    epoch: int
    state: SlotState
    taken_up: set[str] = field(default_factory=set)


class Moves(NamedTuple):
    """What a look at the database leads to: slots to drop, to take, and to give to which incarnation."""

    lost: tuple[int, ...]
    take: tuple[int, ...]
    give: dict[int, str]


class HeldSlots:
    """The slots of one manager, and what it knows of the others'. Times are of its monotonic clock, in ms.

    `term` counts how often the lease has lapsed: what was begun in an earlier term comes to nothing.
    """

    def __init__(self, me: ManagerIdentity, slots: int, lease_ms: int | None) -> None:
        self.me = me
        self.slots = slots
        self.lapses_at = NEVER if lease_ms is None else 0
        self.term = 0
        self._lease_ms = lease_ms
        self._held: dict[int, Held] = {}
        self._holders: dict[int, str | None] = dict.fromkeys(range(slots))
        self._living: dict[str, ManagerIdentity] = {me.incarnation: me}
        self._believed_until = self.lapses_at

    # What is asked all the time.

    def slot_of(self, group: str) -> int:
        """The slot of `group`."""
        return slot_of(group, self.slots)

    def state(self, slot: int) -> SlotState | None:
        """How it stands with a slot; None when it is not ours."""
        held = self._held.get(slot)
        return held.state if held is not None else None

    def serves(self, group: str) -> bool:
        """Whether requests of `group` are answered here; the caller has looked at `lapses_at`."""
        held = self._held.get(slot_of(group, self.slots))
        if held is None:
            return False
        return held.state is SlotState.SERVING or (held.state is SlotState.LOADING and group in held.taken_up)

    def in_state(self, state: SlotState) -> tuple[int, ...]:
        """The slots that are in `state`."""
        return tuple(slot for slot, held in self._held.items() if held.state is state)

    def epochs(self, groups: Iterable[str]) -> tuple[dict[int, int], tuple[int, ...]]:
        """What a transaction with rows of `groups` has to carry, and which of their slots are not ours."""
        slots = {slot_of(group, self.slots) for group in groups}
        epochs = {slot: self._held[slot].epoch for slot in slots if slot in self._held}
        return epochs, tuple(slots - epochs.keys())

    def coordinator(self, slot: int, now: int) -> Coordinator | None:
        """The manager that has `slot`, as far as is known and not too long ago."""
        holder = self._holders[slot]
        identity = self._living.get(holder or "") if now < self._believed_until else None
        return Coordinator(identity.id, identity.url) if identity is not None else None

    # What happens.

    def renewed(self, sent_at: int, view: ClusterState) -> Moves:
        """The lease was renewed, by a statement that was sent at `sent_at`, and this is what it showed."""
        if self._lease_ms is not None:
            self.lapses_at = self._believed_until = sent_at + self._lease_ms
        self._look(view)
        lost = self._overtaken(view)
        self.drop(lost)
        return self._moves(lost)

    def took(self, epochs: Mapping[int, int], term: int) -> None:
        """These slots, asked for in `term`, are ours under these epochs: their groups have to be read."""
        if term != self.term:
            return
        for slot, epoch in epochs.items():
            self._held[slot] = Held(epoch, SlotState.LOADING)
            self._holders[slot] = self.me.incarnation

    def retook(self, slots: Iterable[int], epochs: Mapping[int, int]) -> tuple[int, ...]:
        """Of `slots` those in `epochs` are still ours, under new epochs; returns those that are not."""
        for slot, epoch in epochs.items():
            if slot in self._held:
                self._held[slot].epoch = max(epoch, self._held[slot].epoch)
        gone = tuple(slot for slot in slots if slot not in epochs)
        self.drop(gone)
        return gone

    def taken_up(self, group: str) -> None:
        """`group` is in memory; it is served before the other groups of its slot are."""
        held = self._held.get(self.slot_of(group))
        if held is not None and held.state is SlotState.LOADING:
            held.taken_up.add(group)

    def loaded(self, slots: Iterable[int]) -> None:
        """The groups of these slots are in memory."""
        for slot in slots:
            if self.state(slot) is SlotState.LOADING:
                self._held[slot].state = SlotState.SERVING
                self._held[slot].taken_up.clear()

    def close(self, give: Mapping[int, str | None]) -> dict[int, int]:
        """Answer for these slots no longer; returns their epochs. Whoever asks is sent to the heirs."""
        for slot, heir in give.items():
            if slot in self._held:
                self._held[slot].state = SlotState.CLOSING
                self._holders[slot] = heir
        return {slot: self._held[slot].epoch for slot in give if slot in self._held}

    def drop(self, slots: Iterable[int]) -> None:
        """These slots are not ours any more: lost, or handed over."""
        for slot in slots:
            self._held.pop(slot, None)
            if self._holders[slot] == self.me.incarnation:
                self._holders[slot] = None

    def lapse(self) -> tuple[int, ...]:
        """The lease has run out unrenewed: nothing is ours any more, and who has what is not known."""
        self.term += 1
        lost = tuple(self._held)
        self._held.clear()
        return lost

    def leave(self) -> dict[int, str | None]:
        """Who is to have each of our slots when we go; None where nobody else lives."""
        others = self._living.keys() - {self.me.incarnation}
        dealt = assign_slots(others, self._holders)
        return {slot: dealt.get(slot) for slot in self._held}

    def _look(self, view: ClusterState) -> None:
        living = view.living()
        self._living = {peer.identity.incarnation: peer.identity for peer in living.values()}
        for slot in view.slots:
            held = self._held.get(slot.slot)
            if held is None or slot.epoch > held.epoch:
                self._holders[slot.slot] = slot.holder if slot.holder in living else None

    def _overtaken(self, view: ClusterState) -> tuple[int, ...]:
        """Slots of ours that another has; a view that is older than our own taking says nothing of it."""
        return tuple(
            slot.slot
            for slot in view.slots
            if slot.holder != self.me.incarnation
            and slot.slot in self._held
            and slot.epoch > self._held[slot.slot].epoch
        )

    def _moves(self, lost: tuple[int, ...]) -> Moves:
        """Free slots that are our due are taken, what others should have is given to them."""
        mine = self.me.incarnation
        dealt = assign_slots(self._living, self._holders)
        take = [
            slot
            for slot, holder in self._holders.items()
            if slot not in self._held and (holder == mine or (holder is None and dealt.get(slot) == mine))
        ]
        give = {
            slot: dealt[slot]
            for slot, held in self._held.items()
            if held.state is SlotState.SERVING and dealt[slot] != mine
        }
        return Moves(lost, tuple(take), give)
