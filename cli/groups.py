"""`sparkherd groups`: see and steer groups."""

from __future__ import annotations

import click

from cli.admin import admin_options
from cli.client import Client, path_of
from cli.output import ago, print_json, print_table, tell
from protocol.messages.base import Response, decode_opaque
from protocol.messages.groups import (
    DescribedMember,
    DescribeGroupResponse,
    GroupListResponse,
    RebalanceRequest,
)


@click.group("groups")
def command() -> None:
    """See and steer groups."""


@command.command("list")
@admin_options
def list_groups(client: Client, *, as_json: bool) -> None:
    """List all groups."""
    groups = client.get(path_of("groups"), GroupListResponse).groups
    if as_json:
        print_json(groups)
        return
    print_table(
        ("GROUP", "STATE", "TYPE", "GENERATION", "MEMBERS", "TASKS"),
        ((g.group, g.state, g.protocol_type, g.generation_id, g.members, g.tasks) for g in groups),
    )


@command.command("describe")
@click.argument("group")
@admin_options
def describe(client: Client, group: str, *, as_json: bool) -> None:
    """Show one group and its members."""
    described = client.get(path_of("groups", group), DescribeGroupResponse)
    if as_json:
        print_json(described)
        return
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


@command.command("delete")
@click.argument("group")
@admin_options
def delete(client: Client, group: str, *, as_json: bool) -> None:
    """Delete a group that has no members any more."""
    client.call("DELETE", path_of("groups", group), into=Response)
    tell({"group": group, "deleted": True}, f"{group} deleted", as_json=as_json)


@command.command("rebalance")
@click.argument("group")
@click.option("--reason", metavar="TEXT", help="Shown in the group's history.")
@admin_options
def rebalance(client: Client, group: str, reason: str | None, *, as_json: bool) -> None:
    """Have the group compute its assignment anew."""
    client.call("POST", path_of("groups", group, "rebalance"), RebalanceRequest(reason=reason), into=Response)
    tell({"group": group, "rebalance": "started"}, f"{group}: rebalance started", as_json=as_json)


def _marked(member: DescribedMember, leader_id: str | None) -> str:
    return f"{member.member_id} (leader)" if member.member_id == leader_id else member.member_id


def _given(member: DescribedMember) -> int | None:
    """How many tasks the present assignment gives a member; None where it is no sparkherd worker's."""
    assignment = decode_opaque(member.assignment)
    return len(assignment["tasks"]) if isinstance(assignment, dict) and "tasks" in assignment else None
