"""The fenced Iceberg sink on real tables: what a zombie, a replay, a reset and others' commits meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.connectors.lake_sinks import Table, Writer, meanwhile
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.iceberg.publishing import (
    Drop,
    FastForward,
    GetRefs,
    GetSnapshots,
    MakeBranch,
    PutTag,
    Write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENTS = [GetRefs, MakeBranch, Write, GetSnapshots, FastForward]
"""Of a batch, before its head moves."""
COMPACT = (
    "CALL {catalog}.system.rewrite_data_files(table => '{path}',"
    " options => map('min-input-files', '1', 'rewrite-all', 'true'))"
)
EXPIRE = (
    "CALL {catalog}.system.expire_snapshots(table => '{path}',"
    " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
)


@pytest.fixture
def table(spark: SparkSession) -> Table:
    return Table(spark)


def rows(*batches: int) -> list[int]:
    return sorted(batch * 10 + at for batch in batches for at in range(10))


def test_batches_are_there_once_and_leave_one_branch_and_one_tag(table: Table) -> None:
    """Whoever comes next clears away what the owner before has left."""
    writer = Writer(table, partition_by=["day"])
    assert writer.begin() is None
    assert [writer.batch(number).total for number in range(3)] == [10, 20, 30]
    assert table.ids == rows(0, 1, 2)
    assert len(table.refs()) == 3
    follower = Writer(table, token=2, partition_by=["day"])
    assert follower.begin() == 2
    assert follower.batch(3).total == 40
    assert table.ids == rows(0, 1, 2, 3)
    assert len(table.refs()) == 3
    assert {row[0].day for row in table.run("SELECT partition FROM {table}.files")} == {"d0", "d1"}


def test_a_batch_that_is_done_again_is_there_once(table: Table) -> None:
    """By its owner, and by the next one; its rows are computed all the same."""
    writer = Writer(table)
    writer.begin()
    assert not writer.batch(0).duplicate
    again = writer.batch(0)
    assert (again.duplicate, again.rows, again.total) == (True, 0, 10)
    follower = Writer(table, token=2)
    assert follower.begin() == 0
    assert follower.batch(0).duplicate
    assert table.ids == rows(0)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_zombie_inside_a_batch_writes_nothing_after_the_claim(
    moment: type, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen before any of its steps, it thaws when the next owner has written that batch and one more."""
    zombie = Writer(table)
    zombie.begin()
    zombie.batch(0)
    table.run("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    follower = Writer(table, token=2)

    def taken_over() -> None:
        assert follower.begin() == 0
        follower.batch(1)
        follower.batch(2)

    if moment is MakeBranch:
        zombie.sink._publisher._branch = None  # type: ignore[attr-defined]  # as after others' commit
    with meanwhile(monkeypatch, moment, taken_over), pytest.raises((FencedError, SinkError)) as refused:
        zombie.batch(1)
    assert isinstance(refused.value, FencedError)
    assert table.ids == rows(0, 1, 2)
    with pytest.raises(FencedError):
        zombie.batch(1)
    with pytest.raises(FencedError):
        Writer(table).begin()
    follower.batch(3)
    assert table.ids == rows(0, 1, 2, 3)


def test_a_zombie_that_was_first_is_seen_by_the_claim(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """It publishes between the next owner's look and its claim: the claim begins again."""
    zombie = Writer(table)
    zombie.begin()
    zombie.batch(0)
    follower = Writer(table, token=2)
    with meanwhile(monkeypatch, Write, lambda: zombie.batch(1)):
        assert follower.begin() == 1
    follower.batch(2)
    assert table.ids == rows(0, 1, 2)


@pytest.mark.parametrize("moment", [PutTag, Drop])
def test_a_zombie_that_has_published_leaves_the_fence_alone(
    moment: type, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its late tag is not taken for newer than the owner's, also when all other snapshots have expired."""
    zombie = Writer(table)
    zombie.begin()
    zombie.batch(0)
    table.run("INSERT INTO {table} VALUES (1000, 'x')")
    follower = Writer(table, token=2)

    def taken_over() -> None:
        assert follower.begin() == 1
        follower.batch(2)

    with meanwhile(monkeypatch, moment, taken_over):
        assert zombie.batch(1).total == 20
    for _ in range(2):
        table.run(COMPACT)
    table.run(EXPIRE)
    assert Writer(table, token=3).begin() == 2
    assert table.ids == [*rows(0, 1, 2), 1000]


def test_a_branch_that_somebody_drops_is_not_published(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch begins again, at the head as it is then."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)

    def dropped() -> None:
        tags = {row[0] for row in table.run("SELECT name FROM {table}.refs WHERE type = 'TAG'")}
        for name in table.refs() - {"main"}:
            kind = "TAG" if name in tags else "BRANCH"
            table.run(f"ALTER TABLE {{table}} DROP {kind} IF EXISTS `{name}`")

    with meanwhile(monkeypatch, FastForward, dropped):
        writer.batch(1)
    assert table.ids == rows(0, 1)


def test_batches_out_of_order_are_refused(table: Table) -> None:
    """A gap, another plan, another checkpoint; nothing is written."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    for wrong in ({"number": 2}, {"number": 0, "plan": "other"}, {"number": 1, "checkpoint": "other"}):
        with pytest.raises(OutOfOrderError):
            writer.batch(**wrong)
    assert table.ids == rows(0)


def test_a_reset_begins_anew_and_refuses_who_does_not_know_of_it(table: Table) -> None:
    """Batches count from 0 again, in another checkpoint, beside what is there."""
    before = Writer(table, token=1)
    before.begin()
    before.batch(0)
    after = Writer(table, token=2, resets=1)
    assert after.begin() is None
    assert after.batch(0, checkpoint="new").total == 20
    with pytest.raises(FencedError):
        before.batch(1)
    with pytest.raises(FencedError):
        Writer(table, token=3, resets=0).begin()
    assert table.ids == rows(0, 0)


def test_compaction_and_expiry_lose_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the batches, and in the midst of one: what they make vain is done again."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    table.run(COMPACT)
    with meanwhile(monkeypatch, FastForward, lambda: table.run(COMPACT)):
        writer.batch(1)
    with meanwhile(monkeypatch, FastForward, lambda: table.run(EXPIRE)):
        writer.batch(2)
    table.run(COMPACT)
    table.run("INSERT INTO {table} VALUES (1000, 'x')")
    table.run(EXPIRE)
    assert len(table.run("SELECT * FROM {table}.snapshots")) < 4
    follower = Writer(table, token=2)
    assert follower.begin() == 2
    assert follower.batch(2).duplicate
    follower.batch(3)
    assert table.ids == [*rows(0, 1, 2, 3), 1000]


def test_who_cannot_know_what_was_published_refuses(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before its tag, and all that would tell has expired: two commands of a person's settle it."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), meanwhile(monkeypatch, PutTag, killed):
        writer.batch(1)
    for at in range(2):
        table.run(f"INSERT INTO {{table}} VALUES ({1000 + at}, 'x')")
    table.run(EXPIRE)
    with pytest.raises(SinkError, match="batch 1 was published") as refused:
        Writer(table, token=2).begin()
    _, _, command = str(refused.value).partition("run ")
    table.run("ALTER TABLE {table} " + command.partition(";")[0])
    assert Writer(table, token=2).begin() == 1
    assert table.ids == [*rows(0, 1), 1000, 1001]


def test_a_table_that_was_made_again_has_no_fence(table: Table) -> None:
    """The owner is refused, and finds out at its next start that its batches are gone."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    table.run("DROP TABLE {table}")
    with pytest.raises(SinkError, match="the table"):
        writer.batch(1)
    table.run("CREATE TABLE {table} (id bigint, day string) USING iceberg")
    with pytest.raises(SinkError):
        writer.batch(1)
    assert Writer(table).begin() is None
    assert table.ids == []


def test_catalogs_that_do_not_compare_and_swap_are_refused(table: Table) -> None:
    """Before anything is written, and their setting is named; so is one that is not there."""
    settings: dict[str, Any] = {
        "spark.sql.catalog.old": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.old.type": "hadoop",
        "spark.sql.catalog.old.warehouse": "/nowhere",
    }
    session = table.spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    with pytest.raises(SinkError, match=r"spark\.sql\.catalog\.old\.type is hadoop"):
        Writer(Table(session, "old")).begin()
    with pytest.raises(SinkError, match=r"spark\.sql\.catalog\.absent is not set"):
        Writer(Table(session, "absent")).begin()
