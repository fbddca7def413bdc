"""Notes between a worker and the process on the server that does its query's batches.

They share no memory, but one session, and so its settings: each side has one that it writes and the other
one reads. A call takes some milliseconds.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GATE = "sparkherd.gate"
_BATCH = "sparkherd.batch"


class Wish(Enum):
    """What the worker wants of the query's batches."""

    OPEN = "open"
    CLOSED = "closed"
    CUT = "cut"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What the batches' process says of itself; `total` is how many rows of the task the sink holds."""

    inside: bool = False
    total: int | None = None


class Board:
    """The two settings of one query's session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session  # it closes its connection when nobody has it any more

    def wish(self, wish: Wish) -> None:
        """Written by the worker."""
        self._session.conf.set(_GATE, wish.value)

    def wished(self) -> Wish:
        """Read by the batches' process."""
        return Wish(self._session.conf.get(_GATE, Wish.OPEN.value))

    def tell(self, note: Note) -> None:
        """Written by the batches' process."""
        self._session.conf.set(_BATCH, msgspec.json.encode(note).decode())

    def told(self) -> Note:
        """Read by the worker."""
        text = self._session.conf.get(_BATCH, "")
        return msgspec.json.decode(text, type=Note) if text else Note()
