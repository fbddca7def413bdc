from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.stored_rows import GroupRow, OwnershipRow, TaskRow
from manager.core.views.group_status import TROUBLES_TOLD, GroupStatus, Trouble
from manager.storage.sql_storage import SqlStorage
from protocol.states import Target, TaskState
from tests.integration.manager.members import member_row
from tests.integration.node import running

if TYPE_CHECKING:
    from manager.core.stored_rows import Row
    from tests.integration.manager.backends import Database

FAILING = TROUBLES_TOLD + 5


def task(name: str, target: Target = Target.RUNNING) -> TaskRow:
    return TaskRow(
        group="g",
        task=name,
        definition=msgspec.Raw(b"{}"),
        definition_version=1,
        target=target,
        restart_count=0,
        revision=1,
        weight=1.0,
        worker=None,
        labels={},
    )


def owned(name: str, state: TaskState, cause: str | None = None) -> OwnershipRow:
    return OwnershipRow(group="g", task=name, token=1, owner="a", state=state, cause=cause)


ROWS: list[Row] = [
    GroupRow(group="g", generation=7, protocol_type="sparkherd", leader_id="a"),
    member_row("a"),
    member_row("b", draining=True),
    *(task(f"failing-{number:03}") for number in range(FAILING)),
    *(owned(f"failing-{number:03}", TaskState.FAILED, "boom\n at Frame") for number in range(FAILING)),
    task("running"),
    owned("running", TaskState.RUNNING),
    task("restarting"),
    owned("restarting", TaskState.RESTARTING, "again"),
    owned("deleted", TaskState.FAILED, "no task any more"),
    GroupRow(group="other", generation=1),
]


async def test_figures_are_the_same_from_memory_and_from_storage(
    database: Database, storage: SqlStorage
) -> None:
    """A manager counts the groups of others as their own manager does; the worst of each are named."""
    await storage.commit(ROWS)
    expected = GroupStatus(
        group="g",
        state="Stable",
        generation_id=7,
        workers=2,
        draining=1,
        tasks={"FAILED": FAILING, "RUNNING": 1, "RESTARTING": 1},
        troubles=tuple(Trouble(f"failing-{number:03}", "FAILED", "boom") for number in range(TROUBLES_TOLD)),
    )
    assert [each for each in await storage.group_statuses() if each.group == "g"] == [expected]
    async with running(SqlStorage(database.url)) as runtime:
        assert [each for each in runtime.group_statuses() if each.group == "g"] == [expected]


async def test_a_task_without_an_owner_yet_counts_as_unassigned(storage: SqlStorage) -> None:
    """It has no row of ownership; it is to run all the same, and does not."""
    await storage.commit([GroupRow(group="g"), task("new")])
    (found,) = await storage.group_statuses()
    assert (found.tasks, found.troubles) == ({"UNASSIGNED": 1}, (Trouble("new", "UNASSIGNED", None),))
