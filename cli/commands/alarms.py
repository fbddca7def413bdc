"""`sparkherd alarms`: what rings, by which rules, who has seen it, and what is not told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import click
import msgspec

from cli.client.admin_client import path_of
from cli.commands.alarm_receivers import list_receivers, test_receiver
from cli.exit_codes import DONE
from cli.options.common import admin_options, example, group_argument, optional_group_option
from cli.options.task_file import print_problems
from cli.views.output import ago, local_time, print_json, print_table, print_yaml, tell
from protocol.errors import RefusedError
from protocol.messages.alarms import (
    COUNTED_AT_MOST,
    LONGEST_SILENCE_MS,
    AcknowledgeResponse,
    AlarmListResponse,
    AlarmRulesResponse,
    SilenceListResponse,
    SilenceResponse,
    without_defaults,
)
from protocol.messages.base import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.client.admin_client import AdminClient
    from cli.task_files.differences import Difference
    from protocol.messages.alarms import Alarm

ALARMS: Final = path_of("alarms")
RULES: Final = path_of("alarms", "rules")
SILENCES: Final = path_of("alarms", "silences")
MINUTE_MS: Final = 60_000
HISTORY: Final = 50
PAGE_LENGTH: Final = 1000
LISTED: Final = 1000
MOST_LISTED: Final = 100_000


@click.group("alarms")
def command() -> None:
    """See, silence and acknowledge alarms, and say by which rules they ring (docs/alarms.md)."""


@command.command("list", epilog=example("sparkherd alarms list", "sparkherd alarms list --group flights"))
@optional_group_option("Only its alarms, those that are pending as well.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_LISTED),
    default=LISTED,
    show_default=True,
    help="How many at most.",
)
@admin_options
def list_alarms(client: AdminClient, group: str | None, limit: int, *, as_json: bool) -> None:
    """List what fires, the worst and newest first."""
    path = ALARMS if group is None else path_of("groups", group, "alarms")
    _show(_listed(client, path, limit), as_json=as_json)


def _listed(client: AdminClient, path: str, limit: int, **asked: object) -> AlarmListResponse:
    """The first ones of all groups or of one, page by page."""
    found: list[Alarm] = []
    after: str | None = None
    while True:
        place = {} if after is None else {"after": after}
        query = urlencode({"limit": min(limit - len(found), PAGE_LENGTH), **asked, **place})
        page = client.get(f"{path}?{query}", AlarmListResponse)
        found.extend(page.alarms)
        after = page.next
        if after is None or len(found) >= limit:
            return AlarmListResponse(alarms=tuple(found), total=page.total, next=after)


@command.command("history", epilog=example("sparkherd alarms history flights"))
@group_argument
@click.option(
    "--limit", type=click.IntRange(1, 200), default=HISTORY, show_default=True, help="How many that are over."
)
@admin_options
def history(client: AdminClient, group: str, limit: int, *, as_json: bool) -> None:
    """List the alarms of a group with those that are over."""
    path = path_of("groups", group, "alarms")
    _show(_listed(client, path, MOST_LISTED, past=limit), as_json=as_json)


def _show(answer: AlarmListResponse, *, as_json: bool) -> None:
    if as_json:
        print_json(answer.alarms)
        return
    print_table(
        ("SEVERITY", "STATE", "GROUP", "RULE", "OF", "SINCE", "VALUE", "ABOVE", "SEEN BY"),
        map(_row, answer.alarms),
    )
    left = answer.total - len(answer.alarms)
    if left > 0:
        click.echo(f"and {'at least ' * (answer.total >= COUNTED_AT_MOST)}{left} more", err=True)
    elif answer.next is not None:
        click.echo("and more", err=True)


def _row(alarm: Alarm) -> tuple[object, ...]:
    state = f"{alarm.state}, silenced" if alarm.silenced else alarm.state
    since = ago(alarm.since_ms) if alarm.resolved_at_ms is None else local_time(alarm.since_ms)
    return (
        alarm.severity.value,
        state,
        alarm.group,
        alarm.rule,
        alarm.task or alarm.member or alarm.manager or ("database" if alarm.group is None else None),
        since,
        _figure(alarm.value),
        _figure(alarm.threshold),
        alarm.acknowledged_by,
    )


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:,.6g}"


@command.command("init", epilog=example("sparkherd alarms init > alarms.yaml"))
def init() -> None:
    """Print rules to begin with; they ring for nobody before receivers are added and they are applied."""
    from protocol.default_alarm_rules import DEFAULT_RULES  # noqa: PLC0415 - other commands need none

    print_yaml({"rules": [without_defaults(rule) for rule in DEFAULT_RULES]})


@command.command("rules", epilog=example("sparkherd alarms rules > alarms.yaml"))
@admin_options
def rules(client: AdminClient, *, as_json: bool) -> None:
    """Print all rules, as `apply` takes them."""
    answer = client.get(RULES, AlarmRulesResponse)
    if as_json:
        print_json(answer)
        return
    print_yaml({"rules": [without_defaults(rule) for rule in answer.rules]})
    _tell_unread(answer)


def _tell_unread(answer: AlarmRulesResponse) -> None:
    for each in answer.unread:
        sentence = f"rule {each.name} of kind {each.kind} is kept and passed over: the manager cannot read it"
        click.echo(f"{sentence} ({each.why})", err=True)


@command.command(
    "apply",
    epilog=example("sparkherd alarms apply alarms.yaml --dry-run", "sparkherd alarms apply alarms.yaml"),
)
@click.argument("path", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Only check, and show what would change.")
@admin_options
def apply_command(client: AdminClient, path: str, *, dry_run: bool, as_json: bool) -> int:
    """Have the rules in a file, and no others.

    All of them count or, if anything is wrong, none; doing it twice changes nothing more. Shows what
    differs, rule by rule.
    """
    from cli.task_files import alarm_file, reader  # noqa: PLC0415 - the other commands need no YAML

    try:
        wanted = alarm_file.read_alarm_file(Path(path))
    except reader.TaskFileError as error:
        return print_problems(error.problems)
    present = client.get(RULES, AlarmRulesResponse)
    body = {"rules": wanted, "validate_only": dry_run, "if_match": present.etag}
    try:
        answer = client.call("PUT", RULES, body, into=AlarmRulesResponse)
    except RefusedError as error:
        problems = error.failure.fields.get("problems")
        if not problems:
            raise
        return print_problems(problems)
    _show_changes([*alarm_file.changes(present.rules, wanted)], dry_run=dry_run, as_json=as_json)
    _tell_unread(answer)
    return DONE


def _show_changes(found: Sequence[Difference], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "changes": found})
        return
    click.echo(f"rules: {'would be ' * dry_run}{'changed' if found else 'unchanged'}")
    for change in found:
        click.echo(f"    {change}")


@command.command("silences", epilog=example("sparkherd alarms silences"))
@admin_options
def silences(client: AdminClient, *, as_json: bool) -> None:
    """List the silences that have not ended."""
    answer = client.get(SILENCES, SilenceListResponse)
    if as_json:
        print_json(answer.silences)
        return
    print_table(
        ("ID", "UNTIL", "RULES", "GROUPS", "TASKS", "BY", "REASON"),
        (
            (each.id, local_time(each.ends_at_ms), each.rules, each.groups, each.tasks, each.by, each.reason)
            for each in answer.silences
        ),
    )


@command.command(
    "silence",
    epilog=example(
        'sparkherd alarms silence --by ann --reason "brokers are upgraded" --for-minutes 60 --groups flights'
    ),
)
@click.option("--by", required=True, metavar="NAME", help="Who wants it so.")
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@click.option(
    "--for-minutes",
    type=click.IntRange(1, LONGEST_SILENCE_MS // MINUTE_MS),
    required=True,
    help="For how long; ten years at most.",
)
@click.option("--rules", "rules_glob", default="*", metavar="GLOB", help="Only alarms of these rules.")
@click.option("--groups", default="*", metavar="GLOB", help="Only in these groups.")
@click.option("--tasks", default="*", metavar="GLOB", help="Only of these tasks, and of no workers.")
@admin_options
def silence(client: AdminClient, for_minutes: int, rules_glob: str, *, as_json: bool, **said: Any) -> None:
    """Tell nobody of some alarms for a while; they are shown all the same."""
    ends_at_ms = int(time.time() * 1000) + for_minutes * MINUTE_MS
    body = {"ends_at_ms": ends_at_ms, "rules": rules_glob, **said}
    made = client.call("POST", SILENCES, body, into=SilenceResponse).silence
    sentence = f"{made.id}: silent until {local_time(made.ends_at_ms)}"
    tell(msgspec.to_builtins(made), sentence, as_json=as_json)


@command.command("unsilence", epilog=example("sparkherd alarms unsilence 9c2f4e6a8b01"))
@click.argument("silence_id", metavar="ID")
@admin_options
def unsilence(client: AdminClient, silence_id: str, *, as_json: bool) -> None:
    """End a silence; what still fires is told then."""
    kept = client.get(SILENCES, SilenceListResponse).silences
    if silence_id not in {each.id for each in kept}:
        raise click.ClickException(f"there is no silence {silence_id}; `sparkherd alarms silences` shows all")
    client.call("DELETE", path_of("alarms", "silences", silence_id), into=Response)
    tell({"silence": silence_id, "result": "ended"}, f"{silence_id}: ended", as_json=as_json)


@command.command("ack", epilog=example("sparkherd alarms ack flights lag --by ann --task delays"))
@group_argument
@click.argument("rule", metavar="RULE")
@click.option("--by", required=True, metavar="NAME", help="Who has seen it.")
@click.option("--task", metavar="TASK", help="Only of this task.")
@click.option("--worker", "member", metavar="MEMBER", help="Only of this worker.")
@admin_options
def acknowledge(client: AdminClient, group: str, *, as_json: bool, **said: Any) -> None:
    """Say that somebody has seen what fires of a rule: it is not told again before its end."""
    path = path_of("groups", group, "alarms", "acknowledge")
    count = client.call("POST", path, said, into=AcknowledgeResponse).acknowledged
    result = {"group": group, "rule": said["rule"], "acknowledged": count}
    tell(result, f"{said['rule']}: {count} acknowledged", as_json=as_json)


@command.command(
    "ack-herd",
    epilog=example(
        "sparkherd alarms ack-herd database-failing --by ann",
        "sparkherd alarms ack-herd manager-gone --by ann --manager-id 10.0.0.7:8470",
    ),
)
@click.argument("rule", metavar="RULE")
@click.option("--by", required=True, metavar="NAME", help="Who has seen it.")
@click.option("--manager-id", metavar="ID", help="Only of this manager.")
@admin_options
def acknowledge_herd(
    client: AdminClient, rule: str, by: str, manager_id: str | None, *, as_json: bool
) -> None:
    """Say that somebody has seen what fires of managers or the database by a rule."""
    said = {"rule": rule, "by": by, "manager": manager_id}
    path = path_of("alarms", "acknowledge")
    count = client.call("POST", path, said, into=AcknowledgeResponse).acknowledged
    tell({"rule": rule, "acknowledged": count}, f"{rule}: {count} acknowledged", as_json=as_json)


command.add_command(list_receivers)
command.add_command(test_receiver)
