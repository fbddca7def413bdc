"""The manager's settings: one schema for flags, environment and file (protocol §1)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the group core goes by."""

    min_session_timeout_ms: Annotated[
        int, Meta(ge=1, description="Smallest session timeout a member may ask for, in ms.")
    ] = 1000
    max_session_timeout_ms: Annotated[
        int, Meta(ge=1, description="Largest session timeout a member may ask for, in ms.")
    ] = 1_800_000
    max_rebalance_timeout_ms: Annotated[
        int,
        Meta(ge=1, description="Longest that a member may have others wait for it in a rebalance, in ms."),
    ] = 3_600_000
    initial_rebalance_delay_ms: Annotated[
        int, Meta(ge=0, description="How long an empty group gathers its first members, in ms.")
    ] = 3000
    group_max_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most members a group may have; no limit when absent."),
    ] = None
    new_member_timeout_ms: Annotated[
        int, Meta(ge=1, description="How long a member that was never confirmed may stay parked, in ms.")
    ] = 300_000
    disconnect_grace_ms: Annotated[
        int, Meta(ge=0, description="Session left to a dynamic member whose last connection closed, in ms.")
    ] = 1000
    offset_metadata_max_bytes: Annotated[
        int, Meta(ge=0, description="Longest text kept beside an offset, in bytes.")
    ] = 4096
    lost_task_delay_ms: Annotated[
        int,
        Meta(ge=0, description="How long tasks of a lost worker wait for its return, in ms; 0: not at all."),
    ] = 0
    group_retention_ms: Annotated[
        int, Meta(ge=1, description="How long an empty group without offsets or tasks is remembered, in ms.")
    ] = 7 * 24 * 3600 * 1000


Database = Annotated[
    str,
    Meta(
        min_length=1,
        description="SQLAlchemy URL of the database: SQLite, or PostgreSQL with an asyncio driver.",
    ),
]
DEFAULT_DATABASE = "sqlite+aiosqlite:///sparkherd.db"


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `sparkherd db` needs to know of a manager's settings."""

    database: Database = DEFAULT_DATABASE


class ManagerSettings(GroupSettings, frozen=True, kw_only=True):
    """Everything `sparkherd manager` can be told."""

    listen: Annotated[
        str, Meta(pattern=r"^.+:\d{1,5}$", description="HOST:PORT to serve on; port 0 takes a free one.")
    ] = "127.0.0.1:8470"
    database: Database = DEFAULT_DATABASE
    advertise: Annotated[
        Annotated[str, Meta(pattern=r"^https?://[^/\s]+/?$")] | None,
        Meta(description="URL by which workers and other managers reach this one; else from --listen."),
    ] = None
    manager_id: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:\[\]-]{1,249}$")] | None,
        Meta(description="Name of this manager among others; HOST:PORT of its URL when absent."),
    ] = None
    lease_ms: Annotated[
        int, Meta(ge=500, description="Silence after which other managers take over from this one, in ms.")
    ] = 3000
    slots: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Parts the groups are shared in; the first start fixes it."),
    ] = 64
    max_request_bytes: Annotated[int, Meta(ge=1, description="Largest request body accepted, in bytes.")] = (
        8_388_608
    )
    client_rate: Annotated[
        int,
        Meta(
            ge=1, description="Requests a second that one client may make for long; members' are not counted."
        ),
    ] = 10_000
    client_connections: Annotated[
        int, Meta(ge=1, description="Connections that one address may have; this machine's have no limit.")
    ] = 1000
    request_timeout_ms: Annotated[
        int, Meta(ge=1, description="How long a request may take to come in whole, in ms.")
    ] = 30_000
    answer_timeout_ms: Annotated[
        int, Meta(ge=1, description="How long a client may take nothing of what it is sent, in ms.")
    ] = 60_000
    idle_timeout_ms: Annotated[
        int, Meta(ge=1000, description="How long a connection may be open without a request, in ms.")
    ] = 75_000
    tls_cert: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="File with the manager's certificate and those between it and its authority (PEM)."),
    ] = None
    tls_key: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="File with the key of --tls-cert (PEM); both are read again on SIGHUP."),
    ] = None
    tls_client_ca: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="File with the authority whose certificate every worker has to show (PEM)."),
    ] = None
    tls_ca: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="File with the authority of the other managers' certificates (PEM)."),
    ] = None
    hsts_max_age_s: Annotated[
        int,
        Meta(
            ge=0,
            description="With TLS, how long browsers ask this name by https only, on any port; 0 ends it.",
        ),
    ] = 365 * 24 * 3600
    allow_insecure: Annotated[
        bool,
        Meta(description="Listen beyond this machine without TLS or tokens: everybody there can do all."),
    ] = False
    event_retention_ms: Annotated[int, Meta(ge=1, description="How long an event is kept, in ms.")] = (
        7 * 24 * 3600 * 1000
    )
    event_retention_count: Annotated[int, Meta(ge=1, description="Most events that are kept.")] = 1_000_000
    audit_retention_ms: Annotated[
        int, Meta(ge=1, description="How long the database keeps what admins did, in ms.")
    ] = 90 * 24 * 3600 * 1000
    audit_retention_count: Annotated[
        int, Meta(ge=1, description="Most entries of the audit log that are kept.")
    ] = 1_000_000
    webhook: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^https?://[^\s#]+$")], ...],
        Meta(description="URL that every event is posted to, as https://HOST[:PORT]/PATH."),
    ] = ()
    webhook_secret: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(file|env):.+$")], ...],
        Meta(description="Where the key is that signs webhooks: file:PATH or env:NAME; one for all or each."),
    ] = ()
    alarm_receivers: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="YAML file with those who are told of alarms; read again on SIGHUP."),
    ] = None
