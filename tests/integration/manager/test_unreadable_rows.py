"""A row that makes no sense takes down its own group, says which row it is, and stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from manager.core.commands import CreateTask, DescribeGroup, NewDefinition
from manager.core.stored_rows import OffsetRow, OwnershipRow, RebalanceRow, Unreadable
from manager.runtime import unloadable_groups
from manager.storage.sql_storage import SqlStorage
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.messages.membership import HeartbeatRequest
from protocol.states import Target
from tests.fakes.turns import eventually
from tests.integration.manager.members import error, stable
from tests.integration.node import running

if TYPE_CHECKING:
    from collections.abc import Collection

    import msgspec

    from manager.core.stored_rows import Row
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from tests.integration.manager.backends import Database

Beats = dict[str, HeartbeatRequest]
"""What the members of groups ask."""
DEFINITION: msgspec.Raw = encode_opaque({"entrypoint": "a:b"})


async def make(runtime: CoordinatorRuntime, storage: SqlStorage, group: str) -> HeartbeatRequest:
    """A group with a row in every table; returns its member's heartbeat."""
    definition = NewDefinition(DEFINITION, 1.0, None, {})
    await runtime.ask(group, CreateTask(task="t", definition=definition, target=Target.RUNNING))
    beat = await stable(runtime, group)
    rebalance = RebalanceRow(
        group=group, generation_id=1, reason="r", started_at_ms=1, duration_ms=1, members=1, moved=0
    )
    offset = OffsetRow(group=group, offset_key="k", offset=encode_opaque(1), metadata="")
    await storage.commit([offset, OwnershipRow(group=group, task="t", token=7), rebalance])
    return beat


class Spoiler:
    """One value of the group `bad`, behind the managers' backs."""

    def __init__(self, database: Database, table: str, column: str) -> None:
        self._database, self._table, self._column = database, table, column
        self._where = f"{table} SET {column} = :value WHERE \"group\" = 'bad'"
        self._whole = self.value

    @property
    def value(self) -> Any:
        """As it stands."""
        return self._database.value(f"SELECT {self._column} FROM {self._table} WHERE \"group\" = 'bad'")

    def spoil(self, value: object) -> None:
        """Put something else in its place."""
        if value is None and self._database.backend == "postgresql":
            self._database.run(f"ALTER TABLE {self._table} ALTER COLUMN {self._column} DROP NOT NULL")
        self._put(b"\xff" if value is None and self._database.backend == "sqlite" else value)

    def mend(self) -> None:
        """Put back what was there."""
        self._put(self._whole)

    def _put(self, value: object) -> None:
        with self._database.transaction() as connection:
            connection.execute(sa.text(f"UPDATE {self._where}"), {"value": value})


@pytest.fixture
async def beats(database: Database) -> Beats:
    """Of two groups that a manager has left, what their members ask."""
    storage = SqlStorage(database.url)
    async with running(storage, initial_rebalance_delay_ms=0) as runtime:
        return {group: await make(runtime, storage, group) for group in ("bad", "good")}


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a row that cannot be read to be looked at again."""
    monkeypatch.setattr(unloadable_groups, "AGAIN_S", 0.001)


async def beat(runtime: CoordinatorRuntime, group: str, beats: Beats) -> str:
    """What becomes of a heartbeat."""
    return error(await runtime.ask(group, beats[group]))


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("groups", "state", "Bogus"),
        ("groups", "generation", None),
        ("members", "protocols", b'{"'),
        ("members", "position", None),
        ("offsets", '"offset"', b'{"'),
        ("tasks", "definition", b'{"'),
        ("tasks", "definition", None),
        ("tasks", "target", "SIDEWAYS"),
        ("tasks", "labels", b"[]"),
        ("ownership", "state", ""),
        ("ownership", "token", None),
        ("ownership", "reset", b'{"'),
        ("rebalances", "moved", None),
    ],
)
async def test_its_group_is_refused_with_the_rows_key_and_all_others_are_served(
    database: Database, beats: Beats, table: str, column: str, value: object
) -> None:
    """NULL, or on SQLite, which lets none in, what is no number and no JSON; nothing is overwritten."""
    spoiler = Spoiler(database, table, column)
    spoiler.spoil(value)
    stands = spoiler.value
    with capture_logs() as logs:
        async with running(SqlStorage(database.url)) as runtime:
            assert await beat(runtime, "good", beats) == "NONE"
            refusal = await runtime.ask("bad", DescribeGroup())
            assert await beat(runtime, "bad", beats) == "COORDINATOR_NOT_AVAILABLE"
            lines = {line.group: line.state for line in runtime.groups()}
            faults = {status.group: status.fault for status in runtime.group_statuses()}
    assert isinstance(refusal, Failure)
    assert refusal.message.startswith(f"group bad cannot be read from the database (table {table}, group bad")
    assert column.strip('"') in refusal.message
    assert lines == {"bad": "Unreadable", "good": "Stable"}
    assert faults == {"bad": refusal.message, "good": None}
    assert spoiler.value == stands
    [said] = [entry for entry in logs if entry["event"] == "a group cannot be taken up"]
    assert (said["log_level"], said["group"]) == ("error", "bad")


async def test_a_group_is_served_again_once_its_row_is_mended(
    database: Database, beats: Beats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is looked at from time to time; it is said once to be refused, and once not to be any more."""
    spoiler = Spoiler(database, "tasks", "target")
    spoiler.spoil("SIDEWAYS")
    storage = SqlStorage(database.url)
    looks, look, reads, load = [], storage.still_unreadable, [], storage.load

    async def counted(groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        reads.append(groups)
        return await load(groups)

    async def looked(rows: Collection[Unreadable]) -> frozenset[str]:
        looks.append([row.stored_key for row in rows])
        return await look(rows)

    monkeypatch.setattr(storage, "load", counted)
    monkeypatch.setattr(storage, "still_unreadable", looked)
    with capture_logs() as logs:
        async with running(storage) as runtime:
            await eventually(lambda: len(looks) > 3)
            assert await beat(runtime, "bad", beats) == "COORDINATOR_NOT_AVAILABLE"
            spoiler.mend()
            await eventually(lambda: runtime.groups()[0].state == "Stable")
            assert await beat(runtime, "bad", beats) == "NONE"
    assert looks[0] == [("bad", "t")]
    assert reads[1:] == [("bad",)]
    told = [entry["event"] for entry in logs if entry.get("group") == "bad"]
    assert told[:2] == ["a group cannot be taken up", "a group is no longer refused"]


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("groups", "generation", None),
        ("members", "protocols", b'{"'),
        ("offsets", '"offset"', b'{"'),
        ("tasks", "target", "SIDEWAYS"),
        ("ownership", "state", ""),
        ("rebalances", "moved", None),
    ],
)
async def test_a_row_is_found_again_by_its_key(
    *, database: Database, beats: Beats, storage: SqlStorage, table: str, column: str, value: object
) -> None:
    """In every table; as long as it is as wrong as it was."""
    spoiler = Spoiler(database, table, column)
    spoiler.spoil(value)
    torn = [row for row in (await storage.load(beats))["bad"] if isinstance(row, Unreadable)]
    assert await storage.still_unreadable(torn) == {"bad"}
    spoiler.mend()
    assert await storage.still_unreadable(torn) == set()
    spoiler.spoil(value)
    database.run(f"DELETE FROM {table}")
    assert await storage.still_unreadable(torn) == set()


async def test_a_group_that_was_deleted_for_good_is_not_refused_any_more(
    database: Database, beats: Beats
) -> None:
    """Nothing is stored of it, and that can be read."""
    Spoiler(database, "tasks", "target").spoil("SIDEWAYS")
    async with running(SqlStorage(database.url)) as runtime:
        assert await beat(runtime, "bad", beats) == "COORDINATOR_NOT_AVAILABLE"
        tables = ("groups", "members", "offsets", "tasks", "ownership", "rebalances")
        database.run(*(f"DELETE FROM {table} WHERE \"group\" = 'bad'" for table in tables))
        await eventually(lambda: [line.group for line in runtime.groups()] == ["good"])
        assert await beat(runtime, "bad", beats) == "UNKNOWN_MEMBER_ID"


async def test_a_group_without_its_own_row_is_refused_until_what_refers_to_it_is_gone(
    database: Database, beats: Beats
) -> None:
    """Whoever deletes that row alone is told what else there is; deleted as documented, the group is new."""
    Spoiler(database, "groups", "state").spoil("Bogus")
    async with running(SqlStorage(database.url), initial_rebalance_delay_ms=0) as runtime:
        database.run("DELETE FROM groups WHERE \"group\" = 'bad'")
        await eventually(lambda: "there is no such row" in str(runtime.group_statuses()[0].fault))
        assert await beat(runtime, "bad", beats) == "COORDINATOR_NOT_AVAILABLE"
        tables = ("members", "offsets", "tasks", "rebalances")
        database.run(*(f"DELETE FROM {table} WHERE \"group\" = 'bad'" for table in tables))
        await eventually(lambda: not any(status.fault for status in runtime.group_statuses()))
        assert await beat(runtime, "bad", beats) == "UNKNOWN_MEMBER_ID"
        assert await stable(runtime, "bad")


async def test_a_group_whose_state_is_lost_is_brought_together_anew(database: Database, beats: Beats) -> None:
    """As the docs say: PreparingRebalance is what is always true of a group with members."""
    Spoiler(database, "groups", "state").spoil("Bogus")
    async with running(SqlStorage(database.url)) as runtime:
        Spoiler(database, "groups", "state").spoil("PreparingRebalance")
        await eventually(lambda: runtime.groups()[0].state == "PreparingRebalance")
        assert await beat(runtime, "bad", beats) == "REBALANCE_IN_PROGRESS"


async def test_other_managers_list_it_too(database: Database, beats: Beats, storage: SqlStorage) -> None:
    """Those that have other slots read all groups from the database for their lists."""
    for table, column, value in (("groups", "state", "Bogus"), ("members", "protocols", b'{"')):
        Spoiler(database, table, column).spoil(value)
    assert {line.group: line.state for line in await storage.summaries()} == {
        "bad": "Unreadable",
        "good": "Stable",
    }
    assert [status.group for status in await storage.group_statuses()] == sorted(beats)
    assert [announced.group for announced in await storage.announced_assignors()] == ["good"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_text_that_is_no_utf8_is_its_rows_fault(database: Database, beats: Beats) -> None:
    """SQLite keeps what a damaged disk left; its driver would give out no row at all."""
    database.run("UPDATE ownership SET cause = CAST(X'ff' AS TEXT) WHERE \"group\" = 'bad'")
    database.run("INSERT INTO offsets VALUES (CAST(X'ff' AS TEXT), 'k', X'31', '')")
    async with running(SqlStorage(database.url)) as runtime:
        assert await beat(runtime, "good", beats) == "NONE"
        assert await beat(runtime, "bad", beats) == "COORDINATOR_NOT_AVAILABLE"
