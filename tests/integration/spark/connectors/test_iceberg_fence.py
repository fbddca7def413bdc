"""The fenced Iceberg sink on real tables: what a zombie, a replay, a reset and others' commits meet."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from tests.held_line import TIMEOUT_S
from tests.integration.spark.connectors.held_server import HeldServer
from tests.integration.spark.connectors.lake_sinks import Table, Writer, meanwhile
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.iceberg.place import TablePlace
from worker.sinks.iceberg.publishing import Write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

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


def test_batches_are_there_once_and_leave_one_tag(table: Table) -> None:
    """Which the next owner takes over."""
    writer = Writer(table, partition_by=["day"])
    assert writer.begin() is None
    assert [writer.batch(number).total for number in range(3)] == [10, 20, 30]
    assert table.ids == rows(0, 1, 2)
    assert len(table.refs()) == 2
    follower = Writer(table, token=2, partition_by=["day"])
    assert follower.begin() == 2
    assert follower.batch(3).total == 40
    assert table.ids == rows(0, 1, 2, 3)
    assert len(table.refs()) == 2
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


UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"]}


@pytest.mark.parametrize("options", [{}, UPSERT])
def test_a_zombie_before_its_write_writes_nothing_after_the_claim(
    table: Table, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """It thaws when the next owner has written that batch and one more."""
    zombie = Writer(table, **options)
    zombie.begin()
    zombie.batch(0)
    follower = Writer(table, token=2, **options)

    def taken_over() -> None:
        assert follower.begin() == 0
        follower.batch(1)
        follower.batch(2)

    with meanwhile(monkeypatch, Write, taken_over), pytest.raises(FencedError):
        zombie.batch(1)
    assert table.ids == rows(0, 1, 2)
    with pytest.raises(FencedError):
        zombie.batch(1)
    with pytest.raises(FencedError):
        Writer(table).begin()
    follower.batch(3)
    assert table.ids == rows(0, 1, 2, 3)


@pytest.mark.parametrize("options", [{}, {"mode": "overwrite"}, UPSERT])
def test_a_zombie_inside_its_commit_writes_nothing_after_the_claim(
    spark: SparkSession, postgres: str, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Held at the catalog's UPDATE, its files written and the head compared, as in the control."""
    lake = tmp_path / "lake"
    with HeldServer(postgres) as direct:
        held = HeldServer(postgres)
        slow, table = _at(spark, held, lake), Table(_at(spark, direct, lake), "pg")
        there = Table(slow, "pg")
        there.path, there.name = table.path, table.name
        with held:
            zombie, follower = Writer(there, **options), Writer(table, token=2, **options)
            zombie.begin()
            zombie.batch(0)
            held.hold(b"UPDATE iceberg_tables")
            refused: list[BaseException] = []
            thread = threading.Thread(target=_caught, args=(zombie, 1, refused))
            thread.start()
            assert held.reached.wait(TIMEOUT_S)
            assert follower.begin() == 0
            follower.batch(1)
            held.go_on.set()
            thread.join(TIMEOUT_S)
            assert isinstance(refused[0], FencedError)
            follower.batch(2)
            assert table.ids == (rows(2) if options.get("mode") == "overwrite" else rows(0, 1, 2))


def _at(spark: SparkSession, server: HeldServer, lake: Path) -> SparkSession:
    session = spark.newSession()
    for key, value in server.catalog("pg", lake).items():
        session.conf.set(key, value)
    return session


def _caught(writer: Writer, number: int, errors: list[BaseException]) -> None:
    try:
        writer.batch(number)
    except SinkError as error:
        errors.append(error)


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


def test_a_zombie_that_has_published_leaves_the_fence_alone(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen right after its commit, it does not tell Spark of it; the next owner does."""
    zombie = Writer(table)
    zombie.begin()
    zombie.batch(0)
    follower = Writer(table, token=2)

    def taken_over() -> None:
        for at in range(2):
            table.run(f"INSERT INTO {{table}} VALUES ({1000 + at}, 'x')")
        table.run(EXPIRE)
        assert follower.begin() == 1
        assert follower.batch(1).duplicate
        follower.batch(2)

    with pytest.raises(FencedError), meanwhile(monkeypatch, Write, taken_over, after=True):
        zombie.batch(1)
    table.run(COMPACT)
    table.run(EXPIRE)
    assert Writer(table, token=3).begin() == 2
    assert table.ids == [*rows(0, 1, 2), 1000, 1001]


def test_a_tag_that_somebody_drops_is_put_back(table: Table) -> None:
    """By the next batch; until then the past of the head tells."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    [tag] = table.refs() - {"main"}
    table.run(f"ALTER TABLE {{table}} DROP TAG `{tag}`")
    assert Writer(table, token=2).begin() == 0
    assert table.refs() == {"main", tag}


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
    with meanwhile(monkeypatch, Write, lambda: table.run(COMPACT)):
        writer.batch(1)
    with meanwhile(monkeypatch, Write, lambda: table.run(EXPIRE)):
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


def test_whoever_is_killed_right_after_the_commit_has_left_its_mark(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag is part of the commit: what the batch was is known though its past has expired."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), meanwhile(monkeypatch, Write, killed, after=True):
        writer.batch(1)
    for at in range(2):
        table.run(f"INSERT INTO {{table}} VALUES ({1000 + at}, 'x')")
    table.run(EXPIRE)
    follower = Writer(table, token=2)
    assert follower.begin() == 1
    assert follower.batch(1).duplicate
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


def test_a_table_that_is_committed_by_renaming_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what commits it, should the settings of its catalog not tell."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set("spark.sql.catalog.files.type", "hadoop")
    session.conf.set("spark.sql.catalog.files.warehouse", str(tmp_path))
    session.sql("CREATE NAMESPACE files.shop")
    monkeypatch.setattr(TablePlace, "require_safe", lambda *_: None)
    with pytest.raises(SinkError, match="is committed by renaming a file"):
        Writer(Table(session, "files")).begin()


LOST_ANSWER = (
    "CREATE SEQUENCE answers",
    """
    CREATE FUNCTION answer() RETURNS trigger AS $$
    BEGIN
        IF pg_trigger_depth() > 1 OR nextval('answers') > 1 THEN
            RETURN NEW;
        END IF;
        UPDATE iceberg_tables SET metadata_location = NEW.metadata_location,
            previous_metadata_location = NEW.previous_metadata_location WHERE table_name = NEW.table_name;
        RETURN NULL;
    END
    $$ LANGUAGE plpgsql
    """,
    "CREATE TRIGGER answer BEFORE UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION answer()",
)
"""The first commit is done, and told to have failed: no row was changed."""
NO_MORE = (
    "DROP TRIGGER IF EXISTS answer ON iceberg_tables",
    "DROP FUNCTION IF EXISTS answer",
    "DROP SEQUENCE IF EXISTS answers",
)


@pytest.mark.parametrize("retries", [4, 0])
@pytest.mark.parametrize("options", [{}, {"mode": "overwrite"}, UPSERT])
def test_a_commit_that_was_done_and_told_to_have_failed_keeps_its_files(
    spark: SparkSession, postgres: str, tmp_path: Path, options: dict[str, Any], retries: int
) -> None:
    """Iceberg tries it again, or does not, and clears away the files of what it holds for failed."""
    database = sa.create_engine(sa.make_url(postgres).set(drivername="postgresql+psycopg"))
    with HeldServer(postgres) as server:
        table = Table(_at(spark, server, tmp_path / "lake"), "pg")
        writer = Writer(table, **options)
        writer.begin()
        writer.batch(0)
        table.run(f"ALTER TABLE {{table}} SET TBLPROPERTIES ('commit.retry.num-retries' = '{retries}')")
        try:
            _run(database, *LOST_ANSWER)
            written = writer.batch(1)
        finally:
            _run(database, *NO_MORE)
        assert written.rows == 10
        assert not written.duplicate
        assert writer.batch(2).rows == 10
        assert table.ids == (rows(2) if options.get("mode") == "overwrite" else rows(0, 1, 2))
    database.dispose()


def _run(database: sa.Engine, *statements: str) -> None:
    with database.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
