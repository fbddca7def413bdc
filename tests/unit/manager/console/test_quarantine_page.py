"""The page of rows that a task has put aside: who sees what, what is asked for, what is said of trouble."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from manager.access.authorizer import ANYBODY, Caller
from manager.access.tokens import AccessToken
from manager.console.page import PageRequest
from manager.console.pages.quarantine import MOST_ROWS, QuarantinePage, quarantine
from manager.core.commands import AskQuarantine, GetTask
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.quarantine import QuarantinedRow, QuarantineRequest, QuarantineResponse
from protocol.messages.tasks import TaskResponse
from protocol.roles import Role
from tests.unit.manager.console.answers import NOW, task

if TYPE_CHECKING:
    from manager.console.page_data import PageData

ROW = QuarantinedRow(
    id="0-41-3",
    batch_id=41,
    token=7,
    at_ms=NOW - 1000,
    reason="violation",
    name="known",
    error="known is violated: id >= 0",
    form="row",
    raw='{"id":-3,"carrier":"UA"}',
    origin={"topic": "orders", "partition": 1, "offset": 0, "timestamp": None},
)
FOUND = QuarantineResponse(worker="anna-1", rows=(ROW,), total=8, notes=("a note",))


@dataclass
class Herd:
    """A manager that answers a request about rows with `answer`, and keeps what it was asked."""

    answer: QuarantineResponse | Failure = FOUND
    wanted: list[QuarantineRequest] = field(default_factory=list)

    def now_ms(self) -> int:
        return NOW

    async def ask(self, group: str, request: Any, kind: Any) -> Any:
        assert (group, kind in {TaskResponse, QuarantineResponse}) == ("flights", True)
        if isinstance(request, GetTask):
            return TaskResponse(**msgspec.structs.asdict(task("t")))
        assert isinstance(request, AskQuarantine)
        self.wanted.append(request.wanted)
        if isinstance(self.answer, Failure):
            raise RefusedError(self.answer.code, self.answer.message)
        return self.answer


async def view(herd: Herd, caller: Caller = ANYBODY, **query: str) -> QuarantinePage:
    page = await quarantine(cast("PageData", herd), PageRequest("flights", "t", query, caller))
    assert page.stays
    return cast("QuarantinePage", page.view)


def of_role(role: Role) -> Caller:
    return Caller(AccessToken(token_id="i", name="n", digest=b"", role=role, groups=(), created_at_ms=0))


async def test_rows_are_listed_with_where_they_lay() -> None:
    """Each leads to a page of its own."""
    [line] = (found := await view(Herd())).rows
    assert (found.total, found.notes, found.trouble) == (8, ("a note",), None)
    assert line.path == "/groups/flights/tasks/t/quarantine?row=0-41-3"
    assert line.origin == "topic orders, partition 1, offset 0"


@pytest.mark.parametrize(
    ("caller", "is_masked"),
    [(ANYBODY, False), *((of_role(role), role is Role.VIEWER) for role in Role if role is not Role.WORKER)],
)
async def test_only_an_operator_is_shown_values(caller: Caller, *, is_masked: bool) -> None:
    """The worker is asked to hide them, in a list and of one row."""
    herd = Herd()
    for query in ({}, {"row": "0-41-3"}):
        assert (await view(herd, caller, **query)).is_masked is is_masked
    assert [each.masked for each in herd.wanted] == [is_masked, is_masked]


async def test_filters_are_those_of_the_address() -> None:
    """What it cannot mean is passed over; what is done with the rows goes by the same."""
    herd = Herd()
    found = await view(herd, reason="violation", name=" known ")
    assert json.loads(found.wanted.body) == {"all": True, "reason": "violation", "name": "known"}
    await view(herd, reason="bad", name="n" * 300, row="../x")
    first, second = herd.wanted
    assert (first.action, first.reason, first.name, first.limit) == ("list", "violation", "known", MOST_ROWS)
    assert (second.action, second.reason, second.name) == ("list", None, "n" * 200)


async def test_one_row_is_shown_as_a_person_reads_it() -> None:
    """With a line for each column; buttons mean it alone."""
    herd = Herd()
    found = await view(herd, row="0-41-3")
    assert (herd.wanted[0].action, herd.wanted[0].ids) == ("show", ("0-41-3",))
    assert found.rows[0].raw == '{\n  "id": -3,\n  "carrier": "UA"\n}'
    assert json.loads(found.wanted.body) == {"ids": ["0-41-3"]}


async def test_a_row_that_was_cut_is_shown_as_it_is() -> None:
    """It is no JSON any more."""
    cut = msgspec.structs.replace(FOUND, rows=(msgspec.structs.replace(ROW, raw='{"id":-3,…'),))
    assert (await view(Herd(cut), row="0-41-3")).rows[0].raw == '{"id":-3,…'


async def test_a_row_that_is_gone_is_no_error() -> None:
    """Somebody has played it again, perhaps."""
    gone = msgspec.structs.replace(FOUND, rows=(), total=0)
    assert "there is no row 0-41-3" in str((await view(Herd(gone), row="0-41-3")).trouble)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.TASK_NOT_OWNED, ErrorCode.QUARANTINE_TIMED_OUT, ErrorCode.NO_ELIGIBLE_WORKER],
)
async def test_why_nobody_could_look_is_said_on_the_page(code: ErrorCode) -> None:
    """In the words of the manager; there are no rows then, and no buttons."""
    found = await view(Herd(Failure(code, "no worker has task t")))
    assert (found.trouble, found.rows) == ("no worker has task t", ())


async def test_what_is_wrong_with_the_page_is_no_part_of_it() -> None:
    """As on all others."""
    with pytest.raises(RefusedError):
        await view(Herd(Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the manager stops")))
