"""What the runtime needs of a storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from manager.core.rows import Change, Row


class StorageError(Exception):
    """The storage did not do it, or it is not known whether it did; reading again tells."""


class Storage(Protocol):
    """A durable home of rows. One caller at a time."""

    async def open(self) -> None:
        """Connect and bring the schema up to date.

        Raises:
            StartupError: it cannot be used; the text says what to change.
        """
        ...

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        """All rows of `groups`, or of every group; members by position, history by generation.

        Raises:
            StorageError: try again later.
        """
        ...

    async def commit(self, changes: Sequence[Change]) -> None:
        """Make all of `changes` durable, or none; for one key the last change counts.

        Raises:
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
