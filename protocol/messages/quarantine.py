"""The quarantine of a task: rows that were put aside instead of failing it (protocol §5, Quarantined rows).

The rows are where the task's worker reaches them, and nowhere else: a request about them travels to that
worker as an errand. Tasks that are quarantined because they kill workers are something else (protocol §5,
Quarantine).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

import msgspec

from protocol.errands import ErrandKind
from protocol.messages.base import MAX_INT, BatchId, Millis, PositiveMillis, Request, Response, Token, Whole
from protocol.messages.errands import (
    MOST_SAID,
    SHORTEST_MS,
    ErrandReport,
    ErrandRequest,
    ErrandTrouble,
    SaidText,
)
from protocol.names import Name

MOST_ROWS: Final = 100
"""That one list shows."""
MOST_IDS: Final = 1000
"""That one request names."""
LONGEST_MS: Final = 300_000
"""That the worker may take: a replay goes through the task's query."""
DEFAULT_MS: Final = 30_000
MAX_NAME_LENGTH: Final = 200
"""Characters of what is said in short of what was wrong with a row."""
MAX_RAW_LENGTH: Final = 65_536
"""Characters of a row as it is shown; a worker cuts what is longer."""
MAX_ORIGIN_LENGTH: Final = 1000
"""Characters of each thing that is said of where a row came from."""
MOST_OF_ORIGIN: Final = 16

UNHEARD: Final = "; what was asked for may be done all the same, or in part: look at what is left"

Action = Literal["list", "show", "replay", "discard"]
Reason = Literal["unreadable", "violation", "refused"]
Form = Literal["kafka", "line", "row"]
Encoding = Literal["utf-8", "base64"]

RowId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[0-9]{1,16}-[0-9]{1,16}-[0-9]{1,16}(?![\s\S])",
        description="RESETS-BATCH-N: how often the task had begun anew, the batch, and which of its rows",
    ),
]
RowIds = Annotated[tuple[RowId, ...], msgspec.Meta(max_length=MOST_IDS)]
RowName = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
NameFilter = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH, pattern=r"^[^\x00]*(?![\s\S])")]
"""Databases refuse the character NUL, or take it for the end of a text, which then is that of every name."""
Notes = Annotated[tuple[SaidText, ...], msgspec.Meta(max_length=MOST_SAID)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]
TimeoutMs = Annotated[int, msgspec.Meta(ge=SHORTEST_MS, le=LONGEST_MS)]
_OriginText = Annotated[str, msgspec.Meta(max_length=MAX_ORIGIN_LENGTH)]
_OriginKey = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]


class QuarantineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker of a task is to do with its quarantined rows.

    `ids` are those that are meant; none: all, of `replay` and `discard`. `reason` and `name` are filters.
    `limit` is how many rows a list shows at most. If they are to be `masked`, the worker hides what is in
    them before it answers. `timeout_ms` is how long it may take.
    """

    action: Action
    ids: RowIds = ()
    reason: Reason | None = None
    name: NameFilter | None = None
    limit: Limit = 20
    masked: bool = True
    timeout_ms: PositiveMillis = DEFAULT_MS

    @property
    def unheard(self) -> str:
        """What is to be said besides when nobody will hear how it went: reading leaves nothing behind."""
        return UNHEARD if self.action in {"replay", "discard"} else ""


class QuarantinedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row that was put aside.

    `batch_id` and `token` are those of the batch that has put it aside, at `at_ms` (since 1970). `name` has
    the expectations that it violates, or else the place in the definition of what was wrong. `raw` is the row
    in the `form` it had: the value of a record of Kafka's, a line of a file, or a row of the query's result
    as JSON. What is no UTF-8 is base64, as `encoding` says. `origin` says where it came from, as
    `{"topic", "partition", "offset"}`.
    """

    id: RowId
    batch_id: BatchId
    token: Token
    at_ms: Millis
    reason: Reason
    name: RowName
    error: SaidText
    form: Form
    raw: Annotated[str, msgspec.Meta(max_length=MAX_RAW_LENGTH)]
    encoding: Encoding = "utf-8"
    origin: Annotated[
        dict[_OriginKey, _OriginText | Whole | None], msgspec.Meta(max_length=MOST_OF_ORIGIN)
    ] = {}


class QuarantineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has found, or done.

    `rows` are shown, of `total` that the filters meet. Of those that were to be played again or discarded,
    so many are `replayed`, `discarded`, or `stayed` for the reason that `notes` say.
    """

    rows: Annotated[tuple[QuarantinedRow, ...], msgspec.Meta(max_length=MOST_ROWS)] = ()
    total: Count = 0
    replayed: Count = 0
    discarded: Count = 0
    stayed: Count = 0
    notes: Notes = ()


class QuarantineResponse(Response, frozen=True, kw_only=True):
    """A `QuarantineAnswer`, and which worker has given it."""

    worker: str
    rows: tuple[QuarantinedRow, ...] = ()
    total: int = 0
    replayed: int = 0
    discarded: int = 0
    stayed: int = 0
    notes: tuple[str, ...] = ()


class QuarantineQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows a list is to show, and how long the worker may take."""

    limit: Limit = 20
    reason: Reason | None = None
    name: NameFilter | None = None
    timeout_ms: TimeoutMs = DEFAULT_MS


class QuarantinedRowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How long the worker may take to find one row."""

    timeout_ms: TimeoutMs = DEFAULT_MS


class QuarantineChangeRequest(Request, frozen=True, kw_only=True):
    """Play rows again, or discard them: those of `ids`, or `all` that `reason` and `name` meet."""

    ids: RowIds = ()
    all: bool = False
    reason: Reason | None = None
    name: NameFilter | None = None
    timeout_ms: TimeoutMs = DEFAULT_MS

    def __post_init__(self) -> None:
        """Nobody means all by naming none."""
        if bool(self.ids) is self.all:
            raise ValueError("ids: Expected either these or `all`")
        if self.ids and (self.reason is not None or self.name is not None):
            raise ValueError("ids: Expected no `reason` and no `name` beside them: those go with `all`")


class FetchQuarantineRequest(ErrandRequest, frozen=True, kw_only=True):
    """What is to be done, by the worker that was told of it in a heartbeat's answer."""

    kind: ClassVar[ErrandKind] = ErrandKind.QUARANTINE

    quarantine: str


class FetchQuarantineResponse(Response, frozen=True, kw_only=True):
    """What is to be done with the rows of which task, as long as it is owned under that token.

    The request's `timeout_ms` is what is left of the time.
    """

    task: Name
    token: Token
    request: QuarantineRequest

    @property
    def timeout_ms(self) -> int:
        """How long the worker has."""
        return self.request.timeout_ms


class QuarantineTrouble(ErrandTrouble, frozen=True, kw_only=True):
    """Why it came to no answer."""

    code: Literal[
        "QUARANTINE_TIMED_OUT",
        "QUARANTINE_INTERRUPTED",
        "QUARANTINE_FAILED",
        "TASK_NOT_OWNED",
        "NO_QUARANTINE",
    ]


class ReportQuarantineRequest(ErrandReport, frozen=True, kw_only=True):
    """What has come of it: a `result`, or else the `trouble` that it met."""

    kind: ClassVar[ErrandKind] = ErrandKind.QUARANTINE

    quarantine: str
    result: QuarantineAnswer | None = None
    trouble: QuarantineTrouble | None = None
