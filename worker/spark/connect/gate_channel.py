"""What a worker and the process that does its query's batches tell each other: settings of one session.

They share no memory, but one session at the server, and so its settings. Each setting is written by one
side and read by the other; a call takes some milliseconds.

Owners of a query follow one another while it runs (`worker.spark.connect.adoption`). So what an owner wants
is written under its own token: what a former one writes later, because it was frozen, is read by nobody.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from worker.left_out import NOTHING, LeftOut

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_GATE = "sparkherd.gate"
_BATCH = "sparkherd.batch"
_HEIR = "sparkherd.heir"
_NOBODY = "0"
"""No owner's token: those begin with 1."""


class GateState(Enum):
    """What an owner wants of the query's batches."""

    OPEN = "open"
    CLOSED = "closed"
    CUT = "cut"


class Orders(NamedTuple):
    """What is wanted of the next batch, and the token of the owner that it is to be done under at least."""

    state: GateState
    heir: int


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the batches' process says of itself.

    Args:
        inside: a batch is being done.
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
        """By the worker that runs the query under `token`."""
        self._session.conf.set(_gate(token), state.value)

    def state(self, token: int) -> GateState:
        """What the owner with that token wants."""
        return GateState(self._session.conf.get(_gate(token), GateState.OPEN.value))

    def orders(self, token: int) -> Orders:
        """For the batches' process, which has `token` so far."""
        asked = ((_gate(token), GateState.OPEN.value), (_HEIR, _NOBODY))
        state, heir = self._session.client.get_config_with_defaults(*asked)
        return Orders(GateState(state), int(str(heir)))

    def appoint(self, token: int) -> None:
        """By a worker: the next batch is to be done under its `token`."""
        self._session.conf.set(_HEIR, str(token))

    def has_heir(self, token: int) -> bool:
        """Whether a newer owner than that of `token` has the query."""
        return int(str(self._session.conf.get(_HEIR, _NOBODY))) > token

    def set_status(self, status: BatchStatus) -> None:
        """By the batches' process."""
        self._session.conf.set(_BATCH, msgspec.json.encode(status).decode())

    def status(self) -> BatchStatus:
        """For the worker."""
        text = self._session.conf.get(_BATCH, "")
        return msgspec.json.decode(text, type=BatchStatus) if text else BatchStatus()


def _gate(token: int) -> str:
    return f"{_GATE}.{token}"
