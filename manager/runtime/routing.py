"""Which groups are this manager's to answer for, and what its writes carry to prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from manager.core.turn import Outcome
    from protocol.errors import Failure
    from protocol.messages.base import Request


class GroupRouting(Protocol):
    """Groups belong to slots, and some slots to this manager. Times are of the monotonic clock, in ms."""

    def slot_of(self, group: str) -> int:
        """The slot of `group`."""
        ...

    def admits(self, group: str, now: int) -> bool:
        """Whether requests of `group` are answered here. Asked for every heartbeat."""
        ...

    def refusal(self, group: str) -> Failure:
        """What whoever waited for an answer is told when `group` is not ours any more."""
        ...

    async def turn_away(self, group: str, request: Request) -> Outcome:
        """The answer to a request of a group that is not answered for here, or not yet."""
        ...

    def lapse(self, now: int) -> Collection[int]:
        """The slots that are lost because the lease has run out by `now`."""
        ...

    def lost(self, slots: Collection[int]) -> None:
        """Another manager has these slots, as a write has shown."""
        ...

    def taken_up(self, group: str) -> None:
        """`group` is in memory, though others of its slot may not be yet."""
        ...

    def has_taken_up(self, group: str) -> bool:
        """Whether that was said of `group` since its slot is ours."""
        ...

    def epochs(self, groups: Iterable[str]) -> Mapping[int, int]:
        """What a transaction with rows of these groups carries.

        Raises:
            StaleEpochError: some of them are not ours to write.
        """
        ...

    def is_ours(self, group: str) -> bool:
        """Whether rows of `group` are ours to write."""
        ...

    def serves(self, group: str) -> bool:
        """Whether `group` is ours, and not on its way into memory, or out of it."""
        ...

    async def renew(self, groups: Collection[str]) -> Collection[int]:
        """Make sure that rows can be stored, and that nothing written so far can still arrive.

        Returns:
            Slots of these groups that are not ours any more.

        Raises:
            StorageError: they cannot, for now.
        """
        ...
