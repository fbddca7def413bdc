"""What every storage does, whatever database is behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect

from manager.core.stored_rows import (
    CarriedHistoryRow,
    Dropped,
    GroupRow,
    MemberRow,
    OffsetRow,
    OwnershipRow,
    RebalanceRow,
    Row,
    TaskRow,
)
from manager.storage.base import StorageError
from manager.storage.migrate import VERSION_TABLE, _config, upgrade
from manager.storage.schema import METADATA, TABLES
from manager.storage.sql_storage import SqlStorage
from protocol.connectors import Needs
from protocol.errors import StartupError
from protocol.messages.base import encode_opaque
from protocol.messages.history import TaskHistoryLine
from protocol.messages.membership import Protocol
from protocol.messages.tasks import TaskReset
from protocol.states import Target, TaskState

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tests.integration.manager.backends import Database


def member(member_id: str, position: int) -> MemberRow:
    return MemberRow(
        group="g",
        member_id=member_id,
        position=position,
        instance_id=None,
        client_id="ü",
        host="10.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocols=(Protocol("range", encode_opaque({"a": [1, None]})), Protocol("rr", encode_opaque("x"))),
        assignment=encode_opaque({"tasks": ["t"]}),
    )


ROWS: tuple[Row, ...] = (
    GroupRow(group="g", generation=7, protocol_type="sparkherd", leader_id="m1"),
    member("m1", 1),
    member("m0", 2),
    OffsetRow(group="g", offset_key="k", offset=encode_opaque({"x": 1.5}), metadata="m"),
    TaskRow(
        group="g",
        task="t",
        definition=encode_opaque({"sql": "SELECT 'ä'"}),
        definition_version=2,
        target=Target.PAUSED,
        restart_count=1,
        revision=9,
        weight=1.5,
        worker=None,
        labels={"zone": "b"},
        needs=Needs(("kafka",), "delta"),
        exclusive=True,
    ),
    OwnershipRow(group="g", task="t", token=3, owner="m1", state=TaskState.FAILED, cause="no such path"),
    OwnershipRow(
        group="g",
        task="u",
        token=9,
        reset=TaskReset(2, {"startingOffsets": "ü", "a": 1, "b": 1.5}),
        restarts=b"\x00\xff'",
    ),
    *(
        RebalanceRow(
            group="g", generation_id=n, reason="r", started_at_ms=2**41, duration_ms=1, members=2, moved=0
        )
        for n in (1, 2, 3)
    ),
)


def plain(rows: list[Row]) -> list[object]:
    return [msgspec.json.encode(row) for row in rows]


async def test_what_is_committed_is_read_back_by_another_connection(
    storage: SqlStorage, database: Database
) -> None:
    """Every row type, opaque values untouched, members by position and history by generation."""
    await storage.commit(ROWS)
    other = SqlStorage(database.url)
    await other.open()
    rows = (await other.load())["g"]
    await other.close()
    assert plain(rows) == plain(list(ROWS))


async def test_a_history_from_another_group_is_read_back(storage: SqlStorage) -> None:
    """Line by line, as it came."""
    fields: dict[str, Any] = {"generation_id": 3, "owner": "m0", "token": 2, "group": "f", "task": "ö"}
    lines = tuple(
        TaskHistoryLine(at_ms=2**41 + n, state="FAILED", cause=cause, **fields)
        for n, cause in enumerate(("kein 'ö'", None))
    )
    row = CarriedHistoryRow(group="g", task="t", lines=lines)
    await storage.commit([row])
    assert await storage.load() == {"g": [row]}


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (GroupRow(group="g", generation=1), "Empty"),
        (GroupRow(group="g", generation=1, leader_id="m1"), "Stable"),
        (GroupRow(group="g", generation=1, leader_id="m1", rebalance_on_load=True), "PreparingRebalance"),
        (GroupRow(group="g", generation=1, rebalance_on_load=True), "PreparingRebalance"),
    ],
    ids=["empty", "stable", "rebalancing", "rebalancing-without-members"],
)
async def test_the_stored_state_says_whether_a_group_rebalances_when_it_is_loaded(
    storage: SqlStorage, database: Database, row: GroupRow, state: str
) -> None:
    """The column keeps the words that managers before this one read and write."""
    await storage.commit([row])
    assert database.value("SELECT state FROM groups") == state
    assert await storage.load() == {"g": [row]}


async def test_the_last_change_of_a_key_counts(storage: SqlStorage) -> None:
    """Put, drop and put again in one transaction."""
    older, newer = GroupRow(group="g", generation=1), GroupRow(group="g", generation=2)
    offset = OffsetRow(group="g", offset_key="k", offset=encode_opaque(1), metadata="")
    await storage.commit([older, offset, Dropped(GroupRow, older.key), newer, Dropped(OffsetRow, offset.key)])
    assert plain((await storage.load())["g"]) == plain([newer])


async def test_groups_are_loaded_by_name(storage: SqlStorage) -> None:
    """Only those asked for; an unknown one is not there."""
    await storage.commit([GroupRow(group=name, generation=1) for name in ("a", "b", "c")])
    assert sorted(await storage.load(["a", "c", "zz"])) == ["a", "c"]
    assert await storage.load([]) == {}


async def test_a_failing_commit_changes_nothing(storage: SqlStorage, database: Database) -> None:
    """All or nothing, also when the last statement of the transaction fails."""
    await storage.commit([GroupRow(group="g", generation=1)])
    database.run("DROP TABLE rebalances")
    changes = [GroupRow(group="g", generation=2), ROWS[-1]]
    with pytest.raises(StorageError, match="rebalances"):
        await storage.commit(changes)
    assert database.value("SELECT generation FROM groups") == 1


async def test_opening_twice_keeps_what_is_there(storage: SqlStorage, database: Database) -> None:
    """Migrations run once."""
    await storage.commit([GroupRow(group="g", generation=1)])
    again = SqlStorage(database.url)
    await again.open()
    assert sorted(await again.load()) == ["g"]
    await again.close()


async def test_a_newer_schema_is_refused(storage: SqlStorage, database: Database) -> None:
    """One line that says so, and nothing is touched."""
    database.run(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    await storage.close()
    with pytest.raises(StartupError, match="9999 is newer"):
        await SqlStorage(database.url).open()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("nonsense", "--database: not a SQLAlchemy URL"),
        ("mysql://x/y", "neither sqlite nor postgresql"),
        ("postgresql+asyncpg://x:a@b:geheim@h/y", "its port is no number"),
        ("postgresql+psycopg2://x/y", "the driver psycopg2 is not installed"),
        ("sqlite+aiosqlite:////nowhere/at/all/m.db", "unable to open database file"),
    ],
)
async def test_a_database_that_cannot_be_used_is_named(url: str, complaint: str) -> None:
    """A StartupError of one line, without any of a password."""
    with pytest.raises(StartupError, match=complaint) as caught:
        await SqlStorage(url).open()
    assert "\n" not in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_the_migrations_make_exactly_the_tables_that_are_used(database: Database) -> None:
    """Alembic's own comparison finds nothing, and every field has its column."""

    def differences(connection: Connection) -> list[object]:
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        return list(compare_metadata(context, METADATA))

    with database.transaction() as connection:
        assert differences(connection) == []
    for kind, table in TABLES.items():
        stored = ["state" if name == "rebalance_on_load" else name for name in kind.__struct_fields__]
        assert table.columns.keys() == stored
        assert tuple(c.name for c in table.primary_key) == kind.__struct_fields__[: kind.key_length]


def fill(connection: Connection, revision: str) -> list[Row]:
    """Make the schema of `revision` and store what it can hold of ROWS; returns that."""
    command.upgrade(_config(connection), revision)
    held = []
    for row in ROWS:
        table = TABLES[type(row)]
        columns = [column["name"] for column in inspect(connection).get_columns(table.name)]
        values = {name: getattr(row, name) for name in columns}
        connection.execute(table.insert().values(values))
        held.append(type(row)(**{name: values[name] for name in values if name in row.__struct_fields__}))
    return held


@pytest.mark.parametrize("revision", ["0001", "0002", "0003"])
async def test_rows_of_an_older_schema_are_kept(database: Database, revision: str) -> None:
    """Nothing is lost with the old version, and nobody is drained, kept or reset who was not."""
    with database.transaction() as connection:
        held = fill(connection, revision)
    storage = SqlStorage(database.url)
    await storage.open()
    rows = (await storage.load())["g"]
    await storage.close()
    assert plain(rows) == plain(held)
