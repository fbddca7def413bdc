"""What a worker and the process that does its query's batches tell each other: settings of one session.

They share no memory, but one session at the server, and so its settings. Each setting is written by one
side and read by the other; a call takes some milliseconds.

Owners of a query follow one another while it runs (`worker.spark.connect.adoption`). So each of them has
settings of its own, with its token in their names: what a former one writes late, because it was frozen,
takes nothing from a newer one. The newest of all that were ever appointed has the query.

Since Spark 4.3 a server keeps settings to itself whose values match `spark.redaction.regex`, and `token`,
which any reason of a bad row may have in its name, is among its words. So such values are sent as hexadecimal
digits.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from pyspark.sql.connect import proto

from worker.left_out import NOTHING, LeftOut

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

PREFIX: Final = "sparkherd."
"""Of all these settings; no definition and no `--spark-conf` may have one of them."""
_GATE: Final = "gate."
_HEIR: Final = "heir."
_BATCH: Final = "batch"
_MADE_OF: Final = "made_of"
NOBODY: Final = 0
"""No owner's token: those begin with 1."""


class GateState(Enum):
    """What an owner wants of the query's batches; HELD has the next one wait at the entry."""

    OPEN = "open"
    HELD = "held"
    CLOSED = "closed"
    CUT = "cut"


class Orders(NamedTuple):
    """What is wanted of the next batch, and the token of the newest owner that was appointed."""

    state: GateState
    heir: int


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the batches' process says of itself.

    Args:
        inside: a batch is being done, or waits at the entry.
        token: under which it is, or was last; None of a process that knows of no heirs.
        total: how many rows of the task the sink holds.
        left_out: those that were left out since the query was started.
    """

    inside: bool = False
    token: int | None = None
    total: int | None = None
    left_out: LeftOut = NOTHING


class GateChannel:
    """The settings of one query's session that its gate consists of."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session  # it closes its connection when nobody has it any more

    def set_state(self, token: int, state: GateState) -> None:
        """By the worker that has the query under `token`."""
        self._set(f"{_GATE}{token}", state.value)

    def orders(self, token: int) -> Orders:
        """What the owner with `token` wants, and who is the newest."""
        told = self._told()
        state = GateState(told.get(f"{_GATE}{token}", GateState.OPEN.value))
        return Orders(state, _newest(told))

    def appoint(self, token: int) -> None:
        """By a worker: the next batch is to be done under its `token`."""
        self._set(f"{_HEIR}{token}", "appointed")

    def newest(self) -> int:
        """The newest owner that was appointed; `NOBODY` if it is still the one that has started the query."""
        return _newest(self._told())

    def set_status(self, status: BatchStatus) -> None:
        """By the batches' process."""
        self._set(_BATCH, msgspec.json.encode(status).hex())

    def status(self) -> BatchStatus:
        """For the worker."""
        told = bytes.fromhex(self._session.conf.get(PREFIX + _BATCH, "") or "")
        return msgspec.json.decode(told, type=BatchStatus) if told else BatchStatus()

    def describe(self, made_of: str) -> None:
        """By the worker that starts the query: a digest of what it is made of."""
        self._set(_MADE_OF, made_of)

    def made_of(self) -> str | None:
        """That digest; of a former version's query there is none."""
        return self._session.conf.get(PREFIX + _MADE_OF, "") or None

    def _set(self, name: str, value: str) -> None:
        self._session.conf.set(PREFIX + name, value)

    def _told(self) -> dict[str, str]:
        """All of it, without the prefix, in one call."""
        asked = proto.ConfigRequest.GetAll(prefix=PREFIX)
        operation = proto.ConfigRequest.Operation(get_all=asked)
        pairs = self._session.client.config(operation).pairs
        return {name: value for name, value in pairs if value is not None}


def _newest(told: dict[str, str]) -> int:
    appointed = (name.removeprefix(_HEIR) for name in told if name.startswith(_HEIR))
    return max((int(token) for token in appointed if token.isdecimal()), default=NOBODY)
