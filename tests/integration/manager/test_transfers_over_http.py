"""Transfers between groups of two managers, asked for at either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import CreateTask
from manager.core.transfer_commands import StartTransfer
from manager.runtime.transfer_driver import AT_ONCE, TransferDriver
from manager.storage.transfer_table import TransferTable
from protocol.states import Target
from tests.integration.manager.members import error
from tests.integration.manager.transfers import definition, drive, driver_of, herd, steps, target_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from manager.core.stored_rows import TransferRow
    from tests.integration.manager.managers import Manager
    from tests.integration.manager.transfers import Worker

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
NAMES = tuple(f"g{n}" for n in range(12))
PATH = "/v1/transfers"


def group_of(manager: Manager, *others: str) -> str:
    return next(name for name in NAMES if manager.leases.serves(name) and name not in others)


class Two:
    """Group `source` of manager A, which runs the task `t`, and group `target` of manager B."""

    def __init__(self, a: Manager, b: Manager) -> None:
        self.a, self.b = a, b
        self.source, self.target = group_of(a), group_of(b)
        self.worker: Worker

    async def begin(self) -> None:
        self.worker = await herd(self.a.runtime, self.source, "t")
        await herd(self.b.runtime, self.target, "other")

    def body(self, **more: Any) -> dict[str, Any]:
        return {"from": self.source, "to": self.target, "tasks": ["t"], "id": "move", **more}

    async def targets(self) -> tuple[str, str]:
        """What is wanted of the task in either group."""
        first = await target_of(self.a.runtime, self.source, "t")
        return first, await target_of(self.b.runtime, self.target, "t")


@pytest.fixture
async def two(a: Manager, b: Manager) -> Two:
    made = Two(a, b)
    await made.begin()
    return made


@pytest.mark.parametrize("asked", ["a", "b"])
async def test_a_task_goes_from_a_group_of_one_manager_to_one_of_another(two: Two, asked: str) -> None:
    """Whichever is asked: the one that has the group that it leaves begins, and both carry word."""
    manager = getattr(two, asked)
    status, begun = await manager.http("POST", PATH, two.body(rename={"t": "u"}))
    assert (status, begun["step"], begun["by"]) == (202, "STOPPING", "anybody")
    assert begun["tasks"] == [{"task": "t", "to_task": "u", "step": "STOPPING"}]
    await drive(two.a, two.b)
    assert await two.targets() == ("STOPPED", "UNKNOWN_TASK")
    await two.worker.stop("t")
    await drive(two.a, two.b)
    _, shown = await manager.http("GET", f"{PATH}/move")
    assert steps(shown) == ["DONE"]
    assert await target_of(two.a.runtime, two.source, "t") == "UNKNOWN_TASK"
    assert await target_of(two.b.runtime, two.target, "u") == "RUNNING"
    _, events = await manager.http("GET", "/v1/events")
    told = [event["type"] for event in events["events"] if event["type"].startswith("transfer.")]
    assert told == ["transfer.started", "transfer.given", "transfer.completed"]


@pytest.mark.parametrize("asked", ["a", "b"])
async def test_it_is_cancelled_at_either_manager(two: Two, asked: str) -> None:
    """Twice is as good as once; the task goes on where it was."""
    await two.a.http("POST", PATH, two.body())
    await two.worker.stop("t")
    await driver_of(two.a).look()
    await driver_of(two.b).look()
    assert await two.targets() == ("STOPPED", "STOPPED")
    manager = getattr(two, asked)
    for _ in range(2):
        status, cancelled = await manager.http("POST", f"{PATH}/move/cancel")
        assert (status, cancelled["step"], cancelled["cause"]) == (200, "CANCELLED", "cancelled by anybody")
    await drive(two.a, two.b)
    assert await two.targets() == ("RUNNING", "UNKNOWN_TASK")


async def test_beyond_the_point_of_no_return_nothing_is_cancelled(two: Two) -> None:
    """TASK_TRANSFERRED, and the task goes on in the other group."""
    await two.a.http("POST", PATH, two.body())
    await two.worker.stop("t")
    for manager in (two.a, two.b, two.a):
        await driver_of(manager).look()
    _, shown = await two.a.http("GET", f"{PATH}/move")
    assert steps(shown) == ["GIVEN"]
    status, refused = await two.b.http("POST", f"{PATH}/move/cancel")
    assert (status, refused["error"]) == (409, "TASK_TRANSFERRED")
    await drive(two.a, two.b)
    assert await two.targets() == ("UNKNOWN_TASK", "RUNNING")


@pytest.mark.parametrize("looks", range(7))
async def test_a_manager_that_takes_both_groups_over_goes_on(two: Two, looks: int) -> None:
    """After any number of looks of the two, A dies: its group is B's, which remembers nothing of it."""
    await two.a.http("POST", PATH, two.body())
    await two.worker.stop("t")
    for look in range(looks):
        await driver_of(two.b if look % 2 else two.a).look()
    two.a.expire()
    await two.b.look()
    assert two.b.leases.serves(two.source)
    await drive(two.b)
    assert await target_of(two.b.runtime, two.source, "t") == "UNKNOWN_TASK"
    assert await target_of(two.b.runtime, two.target, "t") == "RUNNING"


async def test_asking_again_is_harmless(two: Two) -> None:
    """Under the same id the transfer is answered as it stands, even when it is over."""
    _, first = await two.a.http("POST", PATH, two.body())
    assert await two.b.http("POST", PATH, two.body()) == (202, first)
    await two.worker.stop("t")
    await drive(two.a, two.b)
    _, again = await two.a.http("POST", PATH, two.body())
    assert steps(again) == ["DONE"]


BAD = [
    ({"to": "nowhere"}, 404, "GROUP_ID_NOT_FOUND", "to: there is no group nowhere"),
    ({"tasks": ["t", "no"]}, 404, "UNKNOWN_TASK", "there is no task no"),
    ({"rename": {"t": "other"}}, 409, "TASK_EXISTS", "tasks[0]: there is a task other"),
    ({"rename": {"x": "y"}}, 400, "INVALID_REQUEST", "rename.x: is not among the tasks"),
    ({"tasks": ["t", "t"]}, 400, "INVALID_REQUEST", "tasks: one of them is there twice"),
    ({"tasks": ["t", "u"], "rename": {"t": "u"}}, 400, "INVALID_REQUEST", "rename: two of the tasks"),
    ({"tasks": []}, 400, "INVALID_REQUEST", "tasks"),
    ({"rename": {"t": "a/b"}}, 400, "INVALID_REQUEST", "rename"),
]


@pytest.mark.parametrize(("more", "status", "code", "said"), BAD)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_what_cannot_be_is_refused_before_anything_stops(  # noqa: PLR0917 - a table
    two: Two,
    more: dict[str, Any],
    status: int,
    code: str,
    said: str,
    validate_only: bool,  # noqa: FBT001
) -> None:
    """With the field, and with validate_only as well as without; the task runs on."""
    answered, refused = await two.b.http("POST", PATH, two.body(**more, validate_only=validate_only))
    assert (answered, refused["error"]) == (status, code)
    assert said in refused["message"]
    assert await two.targets() == ("RUNNING", "UNKNOWN_TASK")


async def test_a_group_whose_workers_could_not_run_it_does_not_get_it(two: Two) -> None:
    """The message says what they lack; allow_unplaced takes that upon itself."""
    command = CreateTask(task="picky", definition=definition(zone="eu"), target=Target.RUNNING)
    await two.a.runtime.ask(two.source, command)
    body = two.body(tasks=["picky"])
    status, refused = await two.a.http("POST", PATH, body)
    assert (status, refused["error"]) == (409, "NO_ELIGIBLE_WORKER")
    assert "no worker has the labels zone=eu" in refused["message"]
    status, begun = await two.a.http("POST", PATH, {**body, "allow_unplaced": True})
    assert (status, begun["step"]) == (202, "STOPPED")


async def test_only_checking_begins_nothing(two: Two) -> None:
    """There is no transfer afterwards, and the task runs."""
    status, checked = await two.b.http("POST", PATH, two.body(validate_only=True))
    assert (status, checked["id"], checked["step"]) == (202, None, "STOPPING")
    assert (await two.a.http("GET", PATH))[1]["transfers"] == []
    assert await two.targets() == ("RUNNING", "UNKNOWN_TASK")


async def test_a_task_under_transfer_is_not_transferred(two: Two) -> None:
    """Under another id; the first one goes on."""
    await two.a.http("POST", PATH, two.body())
    status, refused = await two.b.http("POST", PATH, two.body(id="another"))
    assert (status, refused["error"]) == (409, "TASK_UNDER_TRANSFER")


async def test_transfers_are_listed(two: Two) -> None:
    """All, those of one group, and those that are not over."""
    await two.a.http("POST", PATH, two.body())
    for query, ids in (
        ("", ["move"]),
        (f"?group={two.target}", ["move"]),
        ("?group=x", []),
        ("?state=active", ["move"]),
    ):
        _, listed = await two.b.http("GET", PATH + query)
        assert [each["id"] for each in listed["transfers"]] == ids
    await two.a.http("POST", f"{PATH}/move/cancel")
    assert (await two.b.http("GET", f"{PATH}?state=active"))[1]["transfers"] == []


async def test_an_unknown_transfer_is_none(two: Two) -> None:
    """Neither shown nor cancelled; what cannot be an id is said to be none."""
    for method, path in (("GET", "no"), ("POST", "no/cancel")):
        status, refused = await two.a.http(method, f"{PATH}/{path}")
        assert (status, refused["error"]) == (404, "UNKNOWN_TRANSFER")
    status, refused = await two.a.http("GET", f"{PATH}/a%00b")
    assert (status, refused["error"]) == (400, "INVALID_REQUEST")


async def test_an_id_is_not_used_again_for_another_transfer(two: Two) -> None:
    """Neither by another group nor for other tasks; nothing is begun then, and the field is named."""
    assert (await two.a.http("POST", PATH, two.body()))[0] == 202
    back = {"from": two.target, "to": two.source, "tasks": ["other"], "id": "move"}
    for body in (back, two.body(rename={"t": "u"})):
        status, refused = await two.b.http("POST", PATH, body)
        assert (status, refused["error"]) == (400, "INVALID_REQUEST")
        assert "id: " in refused["message"]
    assert await target_of(two.b.runtime, two.target, "other") == "RUNNING"


async def test_a_manager_reads_those_transfers_only_that_its_groups_take_part_in(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows have whole definitions: of one transfer at a time they are made, and not of those of others."""
    ours = group_of(two.a, two.source)
    await herd(two.a.runtime, ours, "u")
    within = {"from": ours, "to": two.source, "tasks": ["u"], "id": "within"}
    for body in (two.body(), within):
        assert (await two.a.http("POST", PATH, body))[0] == 202
    read: list[str] = []
    brief = TransferTable.brief

    async def noted(table: TransferTable, transfers: Collection[str]) -> Mapping[str, Sequence[TransferRow]]:
        read.extend(transfers)
        return await brief(table, transfers)

    monkeypatch.setattr(TransferTable, "brief", noted)
    assert await driver_of(two.b).look() == 1
    assert read == ["move"]
    assert await driver_of(two.a).look() == 2
    assert sorted(read) == ["move", "move", "within"]


async def test_transfers_that_wait_are_read_together_and_ever_more_rarely(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty of which nothing comes: two statements a look at first, one for how all of them stand later."""
    names = [f"u{number}" for number in range(2 * AT_ONCE + 10)]
    ours = group_of(two.a, two.source)
    await herd(two.a.runtime, ours, *names)
    for name in names:
        command = StartTransfer(transfer=name, to_group=two.source, tasks={name: name})
        assert error(await two.a.runtime.ask(ours, command)) == "NONE"
    table, times = two.a.node.transfers, []
    transact = table._database.transact

    async def counted(work: Any) -> Any:
        times.append(clock[-1])
        return await transact(work)

    monkeypatch.setattr(table._database, "transact", counted)
    clock = [0.0]
    driver = TransferDriver(two.a.runtime, two.a.node.routing, table, lambda: clock[-1])
    looks = []
    for moment in (0.0, 0.05, 0.1, 0.2, 0.31, 5.0, 100.0, 101.0):
        clock.append(moment)
        looks.append((await driver.look(), times.count(moment)))
    assert looks == [(50, 4), (0, 1), (50, 4), (0, 1), (50, 4), (50, 4), (50, 4), (0, 1)]


async def test_a_transfer_that_cannot_be_read_holds_up_no_other(two: Two) -> None:
    """Neither by a step that makes no sense nor by anything else of its rows."""
    ours = group_of(two.a, two.source)
    await herd(two.a.runtime, ours, "u", "v", "w")
    for tasks in ("uw", "v"):
        body = {"from": ours, "to": two.source, "tasks": list(tasks), "id": f"within-{tasks}"}
        assert (await two.a.http("POST", PATH, body))[0] == 202
    table = two.a.node.transfers
    for what in ("step = 'NOWHERE'", "target = 'NOWHERE', step = 'STOPPING'"):
        two.a.database.run(f"UPDATE transfers SET {what} WHERE task = 'u'")
        assert set(await table.active()) == {"within-uw", "within-v"}
        assert set(await table.brief({"within-uw", "within-v"})) == {"within-v"}
        assert await driver_of(two.a).look() == 2


async def test_a_list_is_cut_after_what_the_caller_may_not_know_of(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer transfers of other groups do not push out those of the caller's."""
    monkeypatch.setattr("manager.storage.transfer_table.MOST_SHOWN", 1)
    newer = group_of(two.a, two.source)
    await herd(two.a.runtime, newer, "u")
    assert (await two.a.http("POST", PATH, two.body()))[0] == 202
    body = {"from": newer, "to": two.source, "tasks": ["u"], "id": "newer"}
    assert (await two.a.http("POST", PATH, body))[0] == 202
    table = two.b.node.transfers
    for group, transfer in ((two.target, "move"), (newer, "newer")):
        [[row]] = await table.latest(None, None, {group}.__contains__)
        assert row.transfer == transfer
    assert await table.latest(None, None, {"stranger"}.__contains__) == []
