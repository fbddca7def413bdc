from __future__ import annotations

import pytest

from assignors.base import Member, Task
from assignors.eligibility import Eligibility, worker_names

UUID = "-0b5e6a6c-6a4e-4f0e-9d7d-3a1f5a0c9e42"

ROOM = [
    Member(f"east{UUID}", labels={"zone": "east", "gpu": "yes"}),
    Member(f"rack-7{UUID}", "rack-7", labels={"zone": "east"}),
    Member(f"west{UUID}", labels={"zone": "west", "gpu": "no"}),
]


@pytest.mark.parametrize(
    ("task", "members"),
    [
        (Task("t"), (0, 1, 2)),
        (Task("t", worker="east"), (0,)),
        (Task("t", worker="rack-7"), (1,)),
        (Task("t", worker="north"), (0, 1, 2)),
        (Task("t", worker=f"east{UUID}"), (0, 1, 2)),
        (Task("t", labels={"zone": "east"}), (0, 1)),
        (Task("t", labels={"zone": "east", "gpu": "yes"}), (0,)),
        (Task("t", labels={"gpu": ""}), ()),
        (Task("t", worker="west", labels={"zone": "east"}), ()),
        (Task("t", worker="north", labels={"zone": "east"}), (0, 1)),
    ],
)
def test_who_may_run_a_task(task: Task, members: tuple[int, ...]) -> None:
    """Pins name workers that are there, labels must all be had, and both hold together."""
    assert Eligibility(ROOM).of(task) == members


def test_a_pin_to_a_shared_client_id_means_all_that_share_it() -> None:
    """Client ids need not be unique."""
    twins = [Member(f"twin{UUID}"), Member(f"twin{UUID[:-1]}3"), Member(f"only{UUID}")]
    assert Eligibility(twins).of(Task("t", worker="twin")) == (0, 1)


@pytest.mark.parametrize(
    ("member", "names"),
    [
        (Member(f"a{UUID}"), {"a"}),
        (Member(f"a-b{UUID}"), {"a-b"}),
        (Member(f"a{UUID}", "a"), {"a"}),
        (Member("a-1"), {"a-1"}),
        (Member(f"a{UUID}{UUID}"), {f"a{UUID}"}),
        (Member(f"a{UUID.replace('-4', '-1')}"), {f"a{UUID.replace('-4', '-1')}"}),
    ],
)
def test_only_the_uuid4_at_its_end_is_no_part_of_a_workers_name(member: Member, names: set[str]) -> None:
    """Whatever else a member id holds belongs to the client id."""
    assert worker_names(member) == names


def test_tasks_are_put_together_by_who_may_run_them() -> None:
    """Different words for the same members make one group; narrow groups come first, names rise."""
    tasks = [
        Task("z"),
        Task("b", worker="north"),
        Task("c", labels={"gpu": "yes"}),
        Task("a", worker="east"),
        Task("nobody", labels={"gpu": "maybe"}),
    ]
    groups = Eligibility(ROOM).groups(tasks)
    assert [(who, [task.name for task in group]) for who, group in groups] == [
        ((0,), ["a", "c"]),
        ((0, 1, 2), ["b", "z"]),
    ]


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Task("t"), None),
        (Task("t", labels={"gpu": "x", "arm": "y"}), "no worker has the labels arm=y, gpu=x"),
        (
            Task("t", worker="west", labels={"zone": "east"}),
            "worker west, which it is pinned to, lacks the labels zone=east",
        ),
    ],
)
def test_why_nobody_may_run_a_task(task: Task, reason: str | None) -> None:
    """A person reads what to change."""
    assert Eligibility(ROOM).why_nobody(task) == reason


def test_without_members_the_reason_is_just_that() -> None:
    """No worker, no label to blame."""
    assert Eligibility([]).why_nobody(Task("t")) == "there are no workers"
