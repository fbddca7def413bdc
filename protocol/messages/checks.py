"""Checks: a worker looks at a definition with its Spark, which starts and stores nothing (protocol §5)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from protocol.messages.base import PositiveMillis, Request, Response
from protocol.messages.tasks import Definition, Problem
from protocol.names import Name

MOST_ROWS: Final = 100
SHORTEST_MS: Final = 1000
LONGEST_MS: Final = 60_000
MOST_COLUMNS: Final = 1000
"""That are told; a result with more is no less right."""
MOST_SAID: Final = 100
"""Problems, and notes, of one check."""
MAX_SAID_LENGTH: Final = 2000
"""Characters of one of them."""
MAX_TYPE_LENGTH: Final = 1000
"""Characters of a column's type; that of a struct of structs may be of any length."""
MAX_RESULT_BYTES: Final = 1_048_576
"""Of a result as JSON; a worker leaves rows out that do not fit."""

Begin = Literal["beginning", "end"]
Said = Annotated[tuple[Problem, ...], msgspec.Meta(max_length=MOST_SAID)]
Rows = Annotated[tuple[tuple[Any, ...], ...], msgspec.Meta(max_length=MOST_ROWS)]


class CheckRequest(Request, frozen=True, kw_only=True):
    """Have a worker look at a definition.

    `begin` says from which end of its sources the rows are, of which at most `rows` are shown.
    """

    definition: Definition
    rows: Annotated[int, msgspec.Meta(ge=0, le=MOST_ROWS)] = 10
    begin: Begin = "beginning"
    timeout_ms: Annotated[int, msgspec.Meta(ge=SHORTEST_MS, le=LONGEST_MS)] = 30_000


class CheckedColumn(msgspec.Struct, frozen=True):
    """A column of what the task would write; its type is Spark's, as SQL has it."""

    name: str
    type: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has found.

    `columns` is null if Spark could not tell them. Each row has a JSON value for each column. `notes` are
    worth knowing and no mistakes, such as why there are no rows. Both have the place in the definition.
    """

    problems: Said = ()
    notes: Said = ()
    columns: Annotated[tuple[CheckedColumn, ...], msgspec.Meta(max_length=MOST_COLUMNS)] | None = None
    rows: Rows = ()


class CheckResponse(Response, frozen=True, kw_only=True):
    """A `CheckResult`, and which worker has found it."""

    worker: str
    problems: Said = ()
    notes: Said = ()
    columns: tuple[CheckedColumn, ...] | None = None
    rows: Rows = ()


class FetchCheckRequest(Request, frozen=True, kw_only=True):
    """What is to be checked, by the worker that was told of it in a heartbeat's answer."""

    member_id: str
    check: str
    instance_id: Name | None = None


class FetchCheckResponse(Response, frozen=True, kw_only=True):
    """The definition, and how long the worker has."""

    definition: Definition
    rows: int
    begin: Begin
    timeout_ms: PositiveMillis


class CheckTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a check came to no result: its time was over, or the worker's Spark could not be asked."""

    code: Literal["CHECK_TIMED_OUT", "CHECK_INTERRUPTED"]
    message: Annotated[str, msgspec.Meta(max_length=MAX_SAID_LENGTH)]


class ReportCheckRequest(Request, frozen=True, kw_only=True):
    """What has come of a check: a `result`, or else the `trouble` that it met."""

    member_id: str
    check: str
    instance_id: Name | None = None
    result: CheckResult | None = None
    trouble: CheckTrouble | None = None

    def __post_init__(self) -> None:
        """One of the two, of a size that can be passed on."""
        if (self.result is None) is (self.trouble is None):
            raise ValueError("result: Expected either this or `trouble`")
        if self.result is not None and len(msgspec.json.encode(self.result)) > MAX_RESULT_BYTES:
            raise ValueError(f"result: Expected `object` of at most {MAX_RESULT_BYTES} bytes")
