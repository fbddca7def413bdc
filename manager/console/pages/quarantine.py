"""Rows that a task has put aside, or one of them, as its worker tells them when somebody asks.

The page stays as it is until it is asked for again: each time, the worker that owns the task looks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_path, quarantine_path, task_api, task_path, with_query
from manager.core.commands import AskQuarantine, GetTask
from manager.http.endpoints.quarantine import SEES_VALUES
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.quarantine import (
    MAX_NAME_LENGTH,
    QuarantinedRow,
    QuarantineRequest,
    QuarantineResponse,
    Reason,
    RowId,
)
from protocol.messages.tasks import TaskResponse

if TYPE_CHECKING:
    from manager.console.page_data import PageData

ASKED_MS: Final = 10_000
"""How long the worker may take; a person waits for the page."""
MOST_ROWS: Final = 50
REASONS: Final[tuple[str, ...]] = get_args(Reason)
SAID: Final = frozenset(
    {
        *(ErrorCode.NO_QUARANTINE, ErrorCode.TASK_NOT_OWNED, ErrorCode.NO_ELIGIBLE_WORKER),
        *(ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.QUARANTINE_BUSY, ErrorCode.QUARANTINE_FAILED),
        *(ErrorCode.QUARANTINE_INTERRUPTED, ErrorCode.QUARANTINE_TIMED_OUT),
    }
)
"""What is said on the page, as there is nothing wrong with the page itself."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows; each empty for any. `row` is the id of a single one."""

    reason: str
    name: str
    row: str

    @property
    def body(self) -> str:
        """The same rows, as those endpoints take it that change something."""
        named = {name: value for name, value in (("reason", self.reason), ("name", self.name)) if value}
        return json.dumps({"ids": [self.row]} if self.row else {"all": True, **named})


@dataclass(frozen=True, slots=True)
class RowLine:
    """A row: `path` is its own page, `origin` where it lay, `raw` as a person reads it."""

    row: QuarantinedRow
    path: str
    origin: str | None
    raw: str


@dataclass(frozen=True, slots=True)
class QuarantinePage:
    """What the page shows; `trouble` says why there are no rows to show, if nobody could look."""

    now_ms: int
    group: str
    group_path: str
    task: str
    task_path: str
    path: str
    again: str
    api: str
    wanted: RowFilter
    reasons: tuple[str, ...]
    rows: tuple[RowLine, ...]
    total: int
    notes: tuple[str, ...]
    is_masked: bool
    trouble: str | None


async def quarantine(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/groups/{group}/tasks/{task}/quarantine`."""
    await page_data.ask(request.group, GetTask(task=request.task), TaskResponse)
    wanted = filter_of(request)
    is_masked = not request.caller.may(SEES_VALUES)
    found: QuarantineResponse | str
    try:
        command = AskQuarantine(task=request.task, wanted=asked(wanted, is_masked), timeout_ms=ASKED_MS)
        found = await page_data.ask(request.group, command, QuarantineResponse)
    except RefusedError as error:
        if error.failure.code not in SAID:
            raise
        found = error.failure.message
    view = quarantine_page(request, wanted, found, page_data.now_ms())
    return Page("quarantine.html", f"Rows of {request.task}", "overview", view, stays=True)


def filter_of(request: PageRequest) -> RowFilter:
    """What the address asks for; what it cannot mean is passed over."""
    query = request.query
    reason, row = query.get("reason", ""), query.get("row", "")
    return RowFilter(
        reason=reason if reason in REASONS else "",
        name=query.get("name", "").strip()[:MAX_NAME_LENGTH],
        row=row if _is_id(row) else "",
    )


def asked(wanted: RowFilter, is_masked: bool) -> QuarantineRequest:  # noqa: FBT001 - one of a request's fields
    """What the worker is asked for."""
    if wanted.row:
        return QuarantineRequest(action="show", ids=(wanted.row,), limit=1, masked=is_masked)
    return QuarantineRequest(
        action="list",
        reason=msgspec.convert(wanted.reason or None, Reason | None),
        name=wanted.name or None,
        limit=MOST_ROWS,
        masked=is_masked,
    )


def quarantine_page(
    request: PageRequest, wanted: RowFilter, found: QuarantineResponse | str, now_ms: int
) -> QuarantinePage:
    """What the page shows of what the worker has said, or of why it has not."""
    group, task = request.group, request.task
    path = quarantine_path(group, task)
    told = QuarantineResponse(worker="") if isinstance(found, str) else found
    filters = {"reason": wanted.reason, "name": wanted.name}
    return QuarantinePage(
        now_ms=now_ms,
        group=group,
        group_path=group_path(group),
        task=task,
        task_path=task_path(group, task),
        path=path,
        again=with_query(path, **filters, row=wanted.row),
        api=f"{task_api(group, task)}/quarantine",
        wanted=wanted,
        reasons=REASONS,
        rows=tuple(_line(row, path) for row in told.rows),
        total=told.total,
        notes=told.notes,
        is_masked=not request.caller.may(SEES_VALUES),
        trouble=_trouble(wanted, found),
    )


def _trouble(wanted: RowFilter, found: QuarantineResponse | str) -> str | None:
    if isinstance(found, str):
        return found
    if wanted.row and not found.rows:
        return f"there is no row {wanted.row}: it was played again, discarded, or never there"
    return None


def _line(row: QuarantinedRow, path: str) -> RowLine:
    told = ", ".join(f"{name} {value}" for name, value in row.origin.items() if value is not None)
    return RowLine(row, with_query(path, row=row.id), told or None, _readable(row))


def _readable(row: QuarantinedRow) -> str:
    """A row of the query's result with a line for each column, unless it was cut."""
    if row.form != "row":
        return row.raw
    try:
        document: Any = json.loads(row.raw)
    except ValueError:
        return row.raw
    return json.dumps(document, indent=2, ensure_ascii=False)


def _is_id(text: str) -> bool:
    try:
        msgspec.convert(text, RowId)
    except msgspec.ValidationError:
        return False
    return True
