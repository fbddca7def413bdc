"""Rows that were put aside, as those see them who look at them, play them again, or throw them away."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from worker.sinks.types import EPOCH

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class StoredRow(NamedTuple):
    """A row of a quarantine; the fields are the columns of `worker.sinks.quarantine.rows.FIELDS`."""

    resets: int
    batch_id: int
    nth: int
    token: int
    put_aside_at: datetime
    reason: str
    name: str
    error: str
    form: str
    raw: bytes
    origin: str | None

    @classmethod
    def of_spark(cls, values: tuple[Any, ...]) -> StoredRow:
        """Of a row whose time is in microseconds since 1970, and whose bytes may be a text of base64."""
        given: Any = values[9]
        raw = b64decode(given) if isinstance(given, str) else bytes(given or b"")
        moment = EPOCH + timedelta(microseconds=int(values[4]))
        return cls(*values)._replace(raw=raw, put_aside_at=moment)

    @property
    def id(self) -> str:
        """What people call it by: RESETS-BATCH-NTH, the only one of its task."""
        return f"{self.resets}-{self.batch_id}-{self.nth}"

    @property
    def at_ms(self) -> int:
        """When it was put aside, in milliseconds since 1970; times without a zone are in UTC."""
        at = self.put_aside_at
        return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)

    @property
    def places(self) -> Mapping[str, Any]:
        """Where it came from, as far as that is known."""
        try:
            found = json.loads(self.origin or "{}")
        except ValueError:  # somebody has changed it
            return {}
        return found if isinstance(found, dict) else {}


class Choice(NamedTuple):
    """Which rows of a task are meant: all, or those with one of these ids, reason and name."""

    ids: tuple[str, ...] = ()
    reason: str | None = None
    name: str | None = None


class Found(NamedTuple):
    """Some rows, newest batch first, and how many there are in all."""

    rows: Sequence[StoredRow]
    total: int


class QuarantineStore(ABC):
    """The rows of one task in one place; each call may take a while, and raises `SinkError`."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, as a person may see it."""

    @abstractmethod
    def find(self, choice: Choice, limit: int, *, oldest_first: bool = False) -> Found:
        """Look at rows.

        Args:
            choice: which.
            limit: how many at most.
            oldest_first: in place of the newest batch.
        """

    @abstractmethod
    def discard(self, choice: Choice) -> int:
        """Throw rows away that no replay has taken; returns how many."""

    @abstractmethod
    def take(self, choice: Choice, replay: str, limit: int) -> Sequence[StoredRow]:
        """Have a replay take rows that none has taken; those of two replays are never the same.

        Args:
            choice: which.
            replay: what it is called; no other ever is.
            limit: how many at most.

        Returns:
            Those that it has now.
        """

    @abstractmethod
    def give_back(self, replay: str, ids: Collection[str] | None = None) -> None:
        """A replay lets go of rows, all of its own without `ids`."""

    @abstractmethod
    def finish(self, replay: str) -> int:
        """The rows that a replay has are in the sink: remove them; returns how many."""

    @abstractmethod
    def replays(self) -> Sequence[str]:
        """Those that have rows."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""
