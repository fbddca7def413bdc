"""What the runtime needs of a storage."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from manager.core.stored_rows import Record, Row, Unreadable
    from manager.storage.receiver_health import ReceiverHealth
    from protocol.messages.events import Event


NO_FENCE: Mapping[int, int] = MappingProxyType({})
"""Of who has every slot and knows it."""


class StorageError(Exception):
    """The storage did not do it, or it is not known whether it did; reading again tells."""


class StaleEpochError(StorageError):
    """Another manager has `slots` by now: the transaction carried older epochs, and wrote nothing."""

    def __init__(self, slots: tuple[int, ...]) -> None:
        super().__init__(f"another manager has {len(slots)} of the slots that were written to")
        self.slots = slots


class GoneError(StorageError):
    """This manager is not registered any more: its lease ran out, and others have what it had."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Events in order, and the state of the log, both as of one moment.

    `through` is how far the page goes: it has all there is from where it was asked for up to there. `last_id`
    is the newest event's id, `pruned_through` that of the newest one that is no longer kept (0: all are).
    """

    events: tuple[Event, ...]
    through: int
    last_id: int
    last_at_ms: int
    pruned_through: int


class EventLog(Protocol):
    """What was told, for many readers at a time. Each method may raise `StorageError`."""

    async def read(self, after: int, limit: int, group: str | None = None) -> LogPage:
        """The oldest `limit` events with a higher id than `after`, those of `group` if it is given."""
        ...

    async def latest(self, before: int | None, limit: int, group: str | None = None) -> tuple[Event, ...]:
        """The newest `limit` events with a lower id than `before`, if it is given; the newest first."""
        ...

    async def newest(self) -> int:
        """The id of the newest event, 0 if there never was one."""
        ...

    async def prune(self, before_ms: int, keep: int) -> bool:
        """Forget some of the events that are older than `before_ms`, or than the newest `keep`.

        Returns:
            Whether there may be more to forget.
        """
        ...

    async def position(self, webhook: str) -> int:
        """The id of the last event a webhook is known to have got; the newest one's if it is new."""
        ...

    async def advance(self, webhook: str, position: int) -> None:
        """Keep how far a webhook has come; it never goes back."""
        ...

    async def health(self) -> dict[str, ReceiverHealth]:
        """How the subscribers are, by their names; only those of which something is known."""
        ...

    async def part(
        self,
        webhook: str,
        position: int,
        behind: Mapping[str, ReceiverHealth],
        fence: Mapping[int, int] = NO_FENCE,
    ) -> None:
        """Keep that a subscriber has got the event `position`, and that others, which may be new, have not.

        Args:
            webhook: its name.
            position: the id of the event. Of none that is known to have got more that is forgotten.
            behind: how the others are, by their names; they have got what was before the event.
            fence: as in `keep_health`.

        Raises:
            StaleEpochError: another manager tells them by now; nothing is written.
        """
        ...

    async def keep_health(
        self,
        webhook: str,
        health: ReceiverHealth,
        told: Event | None = None,
        fence: Mapping[int, int] = NO_FENCE,
    ) -> None:
        """Keep how a subscriber is; one that is away stays so until it delivers, or is no more.

        Args:
            webhook: its name.
            health: how it is.
            told: an event of its being away, or away no more. It is written in the same transaction, and only
                if it was not away before, or was: several managers tell it once, whatever each of them knows.
            fence: the slot, with its epoch, by which this manager is the one to tell the subscriber.

        Raises:
            StaleEpochError: another manager tells it by now; nothing is written.
        """
        ...


class Storage(Protocol):
    """A durable home of rows. One caller at a time writes; any number read, and use `events`."""

    @property
    def events(self) -> EventLog:
        """What commits have told."""
        ...

    async def open(self) -> None:
        """Connect and bring the schema up to date.

        Raises:
            StartupError: it cannot be used; the text says what to change.
        """
        ...

    async def group_sizes(self, groups: Collection[str] | None = None) -> dict[str, int]:
        """How many rows are stored of each of `groups`, or of every group, in order; none has those without.

        Raises:
            StorageError: try again later.
        """
        ...

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        """All rows of `groups`, or of every group; members by position, history by generation.

        A row that makes no sense is there as `Unreadable`. However many rows there are, the event loop goes
        round while they are read.

        Raises:
            StorageError: try again later.
        """
        ...

    async def still_unreadable(self, rows: Collection[Unreadable]) -> frozenset[str]:
        """The groups of those `rows` that are still there and as wrong as they were when they were loaded.

        Raises:
            StorageError: try again later.
        """
        ...

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        """Make all of `changes` durable, or none; for one key the last change counts, and every event.

        Args:
            changes: rows to keep and to drop, and events.
            fence: the slots that `changes` belong to, with the epochs under which they were decided.

        Raises:
            StaleEpochError: an epoch is not the present one: nothing was written.
            StorageError: it is not known whether it happened.
        """
        ...

    async def probe(self) -> None:
        """Prove that rows can be stored, by storing something that changes nothing.

        Raises:
            StorageError: they cannot, for now.
        """
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...
