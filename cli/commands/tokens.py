"""`sparkherd tokens`: who may ask managers for what; on their database, so that there can be a first one."""

from __future__ import annotations

import re
import secrets
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cli.exit_codes import DONE
from cli.options.common import example, json_option
from cli.options.database import database_options, in_database
from cli.views.output import ago, print_json, print_table, tell
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from manager.access.tokens import AccessToken

Result = TypeVar("Result")

_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}


@click.group("tokens")
def command() -> None:
    """Make, list and revoke the tokens that workers and people show to a manager.

    These commands work on the managers' database (--database), not through a manager. What they change counts
    on all managers a second later. As soon as there is one token, nothing is done without one any more.
    """


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:  # noqa: ARG001 - click's
    """`90d`, `12h` or `30m` in seconds."""
    if value is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", value)
    if match is None:
        raise click.BadParameter("expected a number and a unit, as 90d, 12h or 30m")
    return int(match[1]) * _UNITS[match[2]]


def _patterns(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001 - click's
    from manager.access.tokens import pattern_fault  # noqa: PLC0415 - `--help` needs no rules

    for pattern in value:
        if fault := pattern_fault(pattern):
            raise click.BadParameter(fault)
    return value


@command.command(
    "create",
    epilog=example(
        "sparkherd tokens create --role admin me > token",
        "sparkherd tokens create --role worker --group flights --expires-in 90d host-7 > token",
    ),
)
@click.argument("name", metavar="NAME")
@click.option(
    "--role", required=True, type=click.Choice([role.value for role in Role]), help="What it may be used for."
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    callback=_patterns,
    help="The only group it is for, or the beginning of names and a *. May be repeated; all without it.",
)
@click.option(
    "--expires-in",
    "expires_in_s",
    callback=_duration,
    metavar="TIME",
    help="As 90d, 12h or 30m; never without it.",
)
@json_option
@database_options
def create(
    name: str,
    *,
    role: str,
    groups: tuple[str, ...],
    expires_in_s: int | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Make a token and print it, this once: only a digest of it is kept. NAME says whose it is."""
    from manager.access.tokens import mint  # noqa: PLC0415 - `--help` needs no rules
    from manager.storage.token_table import add_token  # noqa: PLC0415 - nor a database

    now_ms = _now_ms()
    text, token = mint(
        secrets.token_bytes,
        name=name,
        role=Role(role),
        groups=groups,
        created_at_ms=now_ms,
        expires_at_ms=None if expires_in_s is None else now_ms + expires_in_s * 1000,
    )
    _in_database(flags, lambda connection: add_token(connection, token))
    tell({**_as_dict(token), "token": text}, text, as_json=as_json)
    return DONE


@command.command("list")
@json_option
@database_options
def list_tokens(*, as_json: bool, **flags: Any) -> int:
    """Show all tokens: whose they are, what they are for, and until when. Not the tokens themselves."""
    from manager.storage.token_table import all_tokens  # noqa: PLC0415 - `--help` needs no database

    tokens = _in_database(flags, all_tokens)
    if as_json:
        print_json({"tokens": [_as_dict(token) for token in tokens]})
        return DONE
    print_table(
        ("ID", "NAME", "ROLE", "GROUPS", "MADE", "EXPIRES", "STATE"),
        map(_cells, tokens),
    )
    return DONE


@command.command("revoke")
@click.argument("token_id", metavar="ID")
@json_option
@database_options
def revoke(token_id: str, *, as_json: bool, **flags: Any) -> int:
    """End a token, by the id that `list` shows; on all managers within a second or two."""
    from manager.storage.token_table import revoke_token  # noqa: PLC0415 - `--help` needs no database

    known = _in_database(flags, lambda connection: revoke_token(connection, token_id, _now_ms()))
    if not known:
        raise click.ClickException(f"there is no token {token_id}; `sparkherd tokens list` shows all")
    tell({"id": token_id, "revoked": True}, f"token {token_id} is revoked", as_json=as_json)
    return DONE


def _in_database(flags: dict[str, Any], work: Callable[[Connection], Result]) -> Result:
    """What `work` finds in a database that has all tables; a new one gets them."""
    from manager.storage.migrate import upgrade  # noqa: PLC0415 - `--help` needs no database

    def both(connection: Connection) -> Result:
        upgrade(connection)
        return work(connection)

    return in_database(flags, both)


def _as_dict(token: AccessToken) -> dict[str, object]:
    """A token as scripts see it."""
    return {
        "id": token.token_id,
        "name": token.name,
        "role": token.role_name,
        "groups": list(token.groups),
        "created_at_ms": token.created_at_ms,
        "expires_at_ms": token.expires_at_ms,
        "revoked_at_ms": token.revoked_at_ms,
    }


def _cells(token: AccessToken) -> tuple[object, ...]:
    """A token as people see it."""
    groups = ", ".join(token.groups) or "all"
    made, expires = f"{ago(token.created_at_ms)} ago", _moment(token.expires_at_ms) or "never"
    return token.token_id, token.name, token.role_name, groups, made, expires, _state(token)


def _state(token: AccessToken) -> str:
    if token.revoked_at_ms is not None:
        return "revoked"
    return "live" if token.is_live(_now_ms()) else "expired"


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _now_ms() -> int:
    return int(time.time() * 1000)
