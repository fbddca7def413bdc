"""Checks: a worker looks at a definition with its Spark, which starts and stores nothing (protocol §5)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from protocol.errands import ErrandKind
from protocol.messages.base import PositiveMillis, Request, Response
from protocol.messages.errands import MOST_SAID, SHORTEST_MS, ErrandReport, ErrandRequest, ErrandTrouble
from protocol.messages.tasks import Definition, Problem

MOST_ROWS: Final = 100
LONGEST_MS: Final = 60_000
MOST_COLUMNS: Final = 1000
"""That are told; a result with more is no less right."""
MAX_TYPE_LENGTH: Final = 1000
"""Characters of a column's type; that of a struct of structs may be of any length."""

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


class FetchCheckRequest(ErrandRequest, frozen=True, kw_only=True):
    """What is to be checked, by the worker that was told of it in a heartbeat's answer."""

    kind: ClassVar[ErrandKind] = ErrandKind.CHECK

    check: str


class FetchCheckResponse(Response, frozen=True, kw_only=True):
    """The definition, and how long the worker has."""

    definition: Definition
    rows: int
    begin: Begin
    timeout_ms: PositiveMillis


class CheckTrouble(ErrandTrouble, frozen=True, kw_only=True):
    """Why a check came to no result: its time was over, or the worker's Spark could not be asked."""

    code: Literal["CHECK_TIMED_OUT", "CHECK_INTERRUPTED"]


class ReportCheckRequest(ErrandReport, frozen=True, kw_only=True):
    """What has come of a check: a `result`, or else the `trouble` that it met."""

    kind: ClassVar[ErrandKind] = ErrandKind.CHECK

    check: str
    result: CheckResult | None = None
    trouble: CheckTrouble | None = None
