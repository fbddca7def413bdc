"""`sparkherd groups`: see and steer groups."""

from __future__ import annotations

import click
from msgspec import Raw

from cli.client.admin_client import AdminClient, path_of
from cli.commands import watch
from cli.options.common import admin_options, example, group_argument
from cli.options.wait import until_balanced, wait_options
from cli.views.output import ago, print_json, print_table, tell
from protocol.messages.base import Response, decode_opaque
from protocol.messages.groups import (
    DescribedMember,
    DescribeGroupResponse,
    GroupListResponse,
    Rebalance,
    RebalanceListResponse,
    RebalanceRequest,
)


@click.group("groups")
def command() -> None:
    """See and steer groups."""


@command.command("list", epilog=example("sparkherd groups list"))
@admin_options
def list_groups(client: AdminClient, *, as_json: bool) -> None:
    """List all groups."""
    path = path_of("groups")
    if as_json:
        print_json(client.get(path, Raw))
        return
    print_table(
        ("GROUP", "STATE", "TYPE", "GENERATION", "MEMBERS", "TASKS"),
        (
            (g.group, g.state, g.protocol_type, g.generation_id, g.members, g.tasks)
            for g in client.get(path, GroupListResponse).groups
        ),
    )


@command.command("describe", epilog=example("sparkherd groups describe flights"))
@group_argument
@admin_options
def describe(client: AdminClient, group: str, *, as_json: bool) -> None:
    """Show one group and its members."""
    path = path_of("groups", group)
    if as_json:
        print_json(client.get(path, Raw))
        return
    described = client.get(path, DescribeGroupResponse)
    click.echo(
        f"{described.group}: {described.state}, generation {described.generation_id}, "
        f"assignor {described.protocol_name or '-'}, {described.tasks} tasks"
    )
    print_table(
        ("MEMBER", "INSTANCE", "HOST", "LAST HEARD", "TASKS"),
        (
            (_marked(m, described.leader_id), m.instance_id, m.host, ago(m.last_heartbeat_ms), _given(m))
            for m in described.members
        ),
    )


command.add_command(watch.command)


@command.command("rebalances", epilog=example("sparkherd groups rebalances flights --limit 5"))
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many."
)
@group_argument
@admin_options
def rebalances(client: AdminClient, group: str, limit: int, *, as_json: bool) -> None:
    """Show the latest rebalances of a group, the newest first, and why each happened."""
    path = f"{path_of('groups', group, 'rebalances')}?limit={limit}"
    if as_json:
        print_json(client.get(path, Raw))
        return
    print_table(
        ("GENERATION", "STARTED", "TOOK", "MEMBERS", "MOVED", "REASON"),
        map(_rebalance_row, client.get(path, RebalanceListResponse).rebalances),
    )


@command.command(
    "rebalance", epilog=example("sparkherd groups rebalance flights --reason 'new disks' --wait")
)
@click.option("--reason", metavar="TEXT", help="Shown in the group's history.")
@wait_options
@group_argument
@admin_options
def rebalance(
    client: AdminClient, group: str, reason: str | None, *, wait: bool, timeout_s: float, as_json: bool
) -> int:
    """Have the group compute its assignment anew."""
    path = path_of("groups", group)
    before = client.get(path, DescribeGroupResponse).generation_id if wait else 0
    client.call("POST", f"{path}/rebalance", RebalanceRequest(reason=reason), into=Response)
    tell({"group": group, "rebalance": "started"}, f"{group}: rebalance started", as_json=as_json)
    return until_balanced(client, group, timeout_s, before) if wait else 0


@command.command("delete", epilog=example("sparkherd groups delete flights"))
@group_argument
@admin_options
def delete(client: AdminClient, group: str, *, as_json: bool) -> None:
    """Delete a group that has no members any more."""
    client.call("DELETE", path_of("groups", group), into=Response)
    tell({"group": group, "deleted": True}, f"{group} deleted", as_json=as_json)


def _rebalance_row(r: Rebalance) -> tuple[object, ...]:
    started, took = f"{ago(r.started_at_ms)} ago", f"{r.duration_ms} ms"
    return r.generation_id, started, took, r.members, r.moved, r.reason


def _marked(member: DescribedMember, leader_id: str | None) -> str:
    return f"{member.member_id} (leader)" if member.member_id == leader_id else member.member_id


def _given(member: DescribedMember) -> int | None:
    """How many tasks the present assignment gives a member; None where it is no sparkherd worker's."""
    assignment = decode_opaque(member.assignment)
    return len(assignment["tasks"]) if isinstance(assignment, dict) and "tasks" in assignment else None
