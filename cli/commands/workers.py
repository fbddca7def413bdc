"""`sparkherd workers`: the members of a group, as workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import click
import msgspec

from cli.client.admin_client import AdminClient, path_of
from cli.exit_codes import DONE
from cli.options.common import admin_options, example, group_option, worker_argument
from cli.options.wait import until_drained, wait_options
from cli.views.output import ago, print_json, print_table, tell
from protocol.messages.base import Response
from protocol.messages.groups import DescribedMember, DescribeGroupResponse
from protocol.messages.tasks import TaskListResponse
from protocol.worker_metadata import PROTOCOL_TYPE, WorkerMetadata


@click.group("workers")
def command() -> None:
    """See, drain and remove the workers of a group."""


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A member of a sparkherd group, and how many tasks it owns."""

    worker: str
    instance_id: str | None
    host: str
    capacity: float
    max_tasks: int | None
    labels: dict[str, str]
    url: str | None
    owned: int
    last_heartbeat_ms: int
    draining: bool


@command.command("list", epilog=example("sparkherd workers list --group flights"))
@group_option
@admin_options
def list_workers(client: AdminClient, group: str, *, as_json: bool) -> None:
    """List the workers of a group, and how many tasks each owns."""
    workers = _workers(client, group)
    if as_json:
        print_json({"workers": workers})
        return
    print_table(
        ("WORKER", "INSTANCE", "HOST", "CAPACITY", "LABELS", "OWNED", "DRAINING", "LAST HEARD"),
        map(_row, workers),
    )


@command.command("drain", epilog=example("sparkherd workers drain anna-5a2e... --group flights --wait"))
@click.option("--undo", is_flag=True, help="Let it have tasks again.")
@wait_options
@worker_argument
@group_option
@admin_options
def drain(
    client: AdminClient, group: str, worker: str, *, undo: bool, wait: bool, timeout_s: float, as_json: bool
) -> int:
    """Move all tasks away from WORKER, each as soon as its query has stopped, and keep new ones off it.

    It stays in the group, idle, until it is stopped or the drain is undone.
    """
    path = path_of("groups", group, "members", worker, "drain")
    client.call("DELETE" if undo else "POST", path, into=Response)
    sentence = "takes tasks again" if undo else "is being drained, its tasks move away"
    tell({"worker": worker, "draining": not undo}, f"{worker} {sentence}", as_json=as_json)
    return until_drained(client, group, worker, timeout_s) if wait and not undo else DONE


@command.command("remove", epilog=example("sparkherd workers remove anna-5a2e... --group flights"))
@worker_argument
@group_option
@admin_options
def remove(client: AdminClient, group: str, worker: str, *, as_json: bool) -> None:
    """Put WORKER out of the group at once: it is fenced, and its tasks go elsewhere.

    For workers that are lost but not yet missed; one that still runs joins again as a new member. To have
    its queries end in order, drain it first.
    """
    client.call("DELETE", path_of("groups", group, "members", worker), into=Response)
    tell({"worker": worker, "removed": True}, f"{worker} removed", as_json=as_json)


def _workers(client: AdminClient, group: str) -> list[WorkerLine]:
    described = client.get(path_of("groups", group), DescribeGroupResponse)
    if described.protocol_type not in (PROTOCOL_TYPE, None):
        raise click.UsageError(f"{group} has members of type {described.protocol_type!r}, not workers")
    tasks = client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
    owned = Counter(task.owner for task in tasks)
    return [_worker(member, owned[member.member_id]) for member in described.members]


def _worker(member: DescribedMember, owned: int) -> WorkerLine:
    metadata = msgspec.json.decode(member.metadata, type=WorkerMetadata)
    return WorkerLine(
        worker=member.member_id,
        instance_id=member.instance_id,
        host=member.host,
        capacity=metadata.capacity,
        max_tasks=metadata.max_tasks,
        labels=metadata.labels,
        url=metadata.url,
        owned=owned,
        last_heartbeat_ms=member.last_heartbeat_ms,
        draining=member.draining,
    )


def _row(w: WorkerLine) -> tuple[object, ...]:
    labels = " ".join(f"{key}={value}" for key, value in sorted(w.labels.items())) or None
    draining = "yes" if w.draining else None
    owned = w.owned if w.max_tasks is None else f"{w.owned} of {w.max_tasks}"
    return w.worker, w.instance_id, w.host, w.capacity, labels, owned, draining, ago(w.last_heartbeat_ms)
