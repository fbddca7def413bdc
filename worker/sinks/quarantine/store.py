"""Rows that were put aside, as those see them who look at them, play them again, or throw them away."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from protocol.messages.base import MAX_INT
from worker.sinks.aside import Form, Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

REASONS: Final = get_args(Reason)
FORMS: Final = get_args(Form)
COUNTS: Final = ("resets", "batch_id", "nth")
WHOLE: Final = " AND ".join(
    [
        *(f"{name} BETWEEN 0 AND {MAX_INT}" for name in COUNTS),
        f"reason IN {REASONS}",
        f"form IN {FORMS}",
    ]
)
"""`StoredRow.is_whole` as a condition of SQL, as far as a database of numbers and texts can tell."""


class StoredRow(NamedTuple):
    """A row of a quarantine; the fields are the columns of `worker.sinks.quarantine.rows.FIELDS`.

    `put_aside_at` is in seconds since 1970.
    """

    resets: int
    batch_id: int
    nth: int
    token: int
    put_aside_at: float
    reason: str
    name: str
    error: str
    form: str
    raw: bytes
    origin: str | None

    @classmethod
    def of(cls, values: Iterable[Any]) -> StoredRow:
        """Of a row as its place has it; what is missing or of another kind is empty: people write some.

        The time may be in seconds since 1970, or a text of SQLite's in UTC.
        """
        row = cls(*values)
        return row._replace(
            token=row.token if is_count(row.token) else 0,
            put_aside_at=_seconds(row.put_aside_at),
            name=_text(row.name),
            error=_text(row.error),
            raw=bytes_of(row.raw),
            origin=_text(row.origin) or None,
        )

    @property
    def is_whole(self) -> bool:
        """Whether it can be named, and played."""
        numbers = (self.resets, self.batch_id, self.nth)
        return all(map(is_count, numbers)) and self.reason in REASONS and self.form in FORMS

    @property
    def id(self) -> str:
        """What people call it by: RESETS-BATCH-NTH, the only one of its task."""
        return f"{self.resets}-{self.batch_id}-{self.nth}"

    @property
    def at_ms(self) -> int:
        """When it was put aside, in milliseconds since 1970."""
        return min(max(round(self.put_aside_at * 1000), 0), MAX_INT)

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
    """Some rows, newest batch first, and how many there are in all.

    `strange` is how many there are besides that are no whole rows: somebody has written them by hand.
    """

    rows: Sequence[StoredRow]
    total: int
    strange: int = 0


def is_count(value: object) -> bool:
    """Whether it is a number as rows have them; SQLite keeps anything anywhere."""
    return type(value) is int and 0 <= value <= MAX_INT


def bytes_of(raw: object) -> bytes:
    """What is in a column of bytes."""
    if isinstance(raw, str):
        return raw.encode(errors="replace")
    return bytes(raw) if isinstance(raw, bytes | bytearray | memoryview) else b""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: Any) -> float:
    """Of a time, 0 if it is none."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()
        return float(value) if isfinite(value) else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0


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
