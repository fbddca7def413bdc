from __future__ import annotations

from typing import Any

import pytest

from assignors.base import Member, Task
from assignors.eligibility import MAX_WHY_LENGTH, Eligibility, worker_names
from protocol.connectors import PACKAGES, Formats, Needs

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


KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4"
MIXED = [
    Member("all", spark="4.1.4", formats=Formats(("kafka", "delta"))),
    Member("kafka", spark="4.1.4", formats=Formats(("kafka",))),
    Member("server", formats=Formats((), tuple(PACKAGES))),
    Member("old"),
]


@pytest.mark.parametrize(
    ("needs", "members"),
    [
        (Needs(), (0, 1, 2, 3)),
        (Needs(("kafka",)), (0, 1, 3)),
        (Needs(("kafka",), "delta"), (0, 3)),
        (Needs((), "delta"), (0, 3)),
        (Needs(("cosmos",)), (2, 3)),
    ],
)
def test_who_has_what_a_task_reads_and_writes(needs: Needs, members: tuple[int, ...]) -> None:
    """A server that was not asked for a format may have it, and so may a worker that says nothing."""
    assert Eligibility(MIXED).of(Task("t", needs=needs)) == members


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (
            Task("t", needs=Needs(("kafka",))),
            f"no worker has the source `kafka`; start one with --packages {KAFKA_PACKAGE}",
        ),
        (
            Task("t", needs=Needs((), "cosmos")),
            "no worker has the sink `cosmos`; start one with --packages GROUP:ARTIFACT:VERSION of cosmos",
        ),
        (Task("t", needs=Needs(("delta",), "avro")), "no worker has the source `delta` and the sink `avro`"),
        (
            Task("t", labels={"zone": "x"}, needs=Needs(("delta",))),
            "no worker has the labels zone=x and the source `delta`",
        ),
        (
            Task("t", worker="a", needs=Needs(("avro",))),
            "worker a, which it is pinned to, lacks the source `avro`",
        ),
    ],
)
def test_why_a_connector_keeps_a_task_from_everybody(task: Task, why: str) -> None:
    """What to start a worker with, if no worker has it at all."""
    room = [
        Member("a", spark="4.1.4", formats=Formats(("delta",))),
        Member("b", spark="4.1.4", formats=Formats(("avro",))),
    ]
    assert (Eligibility(room).why_nobody(task) or "").startswith(why)


def test_a_reason_is_of_bounded_length() -> None:
    """A definition may have labels and formats of any number and length; the leader tells of each task."""
    many = {f"label{number}": "x" * 50 for number in range(100)}
    room = [Member("m", formats=Formats(("kafka",)))]
    for task in (Task("t", labels=many), Task("t", needs=Needs(("f" * 10_000,)))):
        why = Eligibility(room).why_nobody(task) or ""
        assert len(why) == MAX_WHY_LENGTH
        assert why.startswith("no worker has the ")


def test_tasks_that_are_alike_are_held_against_the_members_once() -> None:
    """Ten thousand tasks that nobody may run are ten thousand looks at the members else."""
    looks: list[str] = []

    class Counted(dict[str, str]):
        def get(self, key: Any, default: Any = None) -> Any:
            looks.append(key)
            return super().get(key, default)

    eligibility = Eligibility([Member("m", labels=Counted())])
    tasks = [Task(f"t{number}", labels={"gpu": "yes"}) for number in range(10)]
    first, *others = [eligibility.why_nobody(task) for task in tasks]
    assert all(why is first for why in others)
    assert looks == ["gpu"]
