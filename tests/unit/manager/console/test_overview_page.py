from __future__ import annotations

from typing import Any

from manager.console.page import PageRequest
from manager.console.pages.overview import OverviewPage, alerts, overview_page
from manager.core.views.group_status import GroupStatus, Trouble
from protocol.messages.cluster import ManagerListResponse, ManagerSummary, SlotSummary
from tests.unit.manager.console.answers import NOW

ALONE = ManagerListResponse(managers=(ManagerSummary(id="m1", url="http://m1", alive=True, slots=0),))


def status(name: str = "g", workers: int = 1, **fields: Any) -> GroupStatus:
    told: dict[str, Any] = {
        "state": "Stable",
        "generation_id": 3,
        "draining": 0,
        "tasks": {"RUNNING": 2},
        "troubles": (),
    }
    return GroupStatus(group=name, workers=workers, **(told | fields))


def shown(*statuses: GroupStatus, managers: ManagerListResponse = ALONE, **query: str) -> OverviewPage:
    return overview_page(statuses, managers, (), PageRequest("", "", query), now_ms=NOW, can_store=True)


def wrong(
    *statuses: GroupStatus, managers: ManagerListResponse = ALONE, can_store: bool = True
) -> list[tuple[str, str]]:
    return [(each.severity, each.what) for each in alerts(statuses, managers, can_store=can_store)]


def test_nothing_is_wrong_with_a_herd_that_runs() -> None:
    """A stable group with running, paused, stopped and completed tasks is no problem."""
    assert wrong(status(tasks={"RUNNING": 2, "PAUSED": 1, "STOPPED": 1, "COMPLETED": 1})) == []


def test_what_is_worst_comes_first() -> None:
    """A failed task before an unassigned one, and both before what is only going on, in whatever group."""
    calm = status("a", state="PreparingRebalance", draining=1)
    troubled = status(
        "b",
        tasks={"FAILED": 1, "UNASSIGNED": 1},
        troubles=(Trouble("t1", "FAILED", "boom"), Trouble("t2", "UNASSIGNED", "no worker has the labels")),
    )
    assert wrong(calm, troubled) == [
        ("bad", "Task FAILED"),
        ("warn", "Task UNASSIGNED"),
        ("note", "Rebalancing"),
        ("note", "1 worker draining"),
    ]
    first = alerts([calm, troubled], ALONE, can_store=True)[0]
    assert (first.where, first.path, first.detail) == ("b / t1", "/groups/b/tasks/t1", "boom")


def test_many_of_a_kind_are_counted() -> None:
    """900 failed tasks are one line that leads to them, with the cause of one."""
    troubles = tuple(Trouble(f"t{number}", "FAILED", "boom") for number in range(20))
    (alert,) = alerts([status(tasks={"FAILED": 900}, troubles=troubles)], ALONE, can_store=True)
    assert (alert.what, alert.path, alert.detail) == (
        "900 tasks FAILED",
        "/groups/g?state=FAILED#tasks",
        "boom",
    )


def test_tasks_without_any_worker_are_one_problem() -> None:
    """Not one for each task; tasks that are not to run are none."""
    assert wrong(status(workers=0, state="Empty", tasks={"UNASSIGNED": 9})) == [
        ("bad", "No worker for 9 tasks")
    ]
    assert wrong(status(workers=0, state="Empty", tasks={"STOPPED": 9, "COMPLETED": 1})) == []


def test_managers_and_the_database_may_be_the_problem() -> None:
    """A manager whose lease ran out, slots that nobody has, a database that takes nothing."""
    managers = ManagerListResponse(
        managers=(ManagerSummary(id="m2", url="http://m2", alive=False, slots=1, lease_left_ms=-5),),
        slots=(SlotSummary(0, 1, "m2"), SlotSummary(1, 4, None)),
    )
    assert wrong(managers=managers, can_store=False) == [
        ("bad", "The database takes no writes"),
        ("bad", "1 slot of groups without a manager"),
        ("warn", "A manager is gone"),
    ]
    (line,) = shown(managers=managers).managers
    assert (line.slots, line.lease) == ("1 of 2", "run out")


def test_groups_can_be_looked_for() -> None:
    """By a part of the name, in any case; the figures still count all."""
    view = shown(status("flights-EU"), status("flights-us"), status("readings"), q=" EU ")
    assert [line.name for line in view.groups.items] == ["flights-EU"]
    assert [(figure.name, figure.value) for figure in view.figures][:2] == [("Groups", "3"), ("Tasks", "6")]


def test_many_groups_are_paged() -> None:
    """Fifty a page; a page that is not there is the nearest that is."""
    groups = [status(f"g{number:03}") for number in range(120)]
    assert (shown(*groups).groups.first, shown(*groups).groups.last) == (1, 50)
    assert [line.name for line in shown(*groups, page="3").groups.items][-1] == "g119"
    for page in ("0", "-1", "99", "one", "9" * 50, ""):
        assert shown(*groups, page=page).groups.number in {1, 3}
