"""The fenced Delta sink on S3, as far as a stand-in goes that puts a file where there is none in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.connectors.delta_tables import Frozen, Table
from tests.s3 import server as s3
from worker.sinks.errors import FencedError, SinkError
from worker.sinks.fence import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def bucket(spark: SparkSession) -> Iterator[s3.Store]:
    """Hadoop is told of it while the test lasts."""
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    with s3.running() as (store, url):
        settings = {name.removeprefix("spark.hadoop."): text for name, text in s3.s3a(url).items()}
        settings["fs.s3.impl"] = "org.apache.hadoop.fs.s3a.S3AFileSystem"
        for name, text in settings.items():
            conf.set(name, text)
        yield store
        for name in settings:
            conf.unset(name)
    jvm: Any = spark._jvm
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()


def test_owners_hand_a_table_in_s3_over(spark: SparkSession, bucket: s3.Store, tmp_path: Path) -> None:
    """A batch that was held in its files fails at its commit; one that begins later is refused."""
    table = Table(spark, tmp_path, f"s3a://{s3.BUCKET}/orders")
    zombie = table.owner(1)
    zombie.write(table.batch(0, 1, 2))
    held = Frozen(table, zombie, 1, tmp_path)
    owner = table.owner(2)
    assert owner.claim().last == Mark("c", 0, "p0")
    owner.write(table.batch(1, 3))
    assert owner.write(table.batch(1, 3)).duplicate
    assert isinstance(held.end(), FencedError)
    with pytest.raises(FencedError):
        zombie.write(table.batch(1, 9))
    assert table.rows == [(1, "b0"), (2, "b0"), (3, "b1")]
    assert all(key.startswith("orders/") for key in bucket.objects)


def test_of_two_commits_of_one_version_s3_refuses_one(spark: SparkSession, bucket: s3.Store) -> None:
    """Nobody asks before; the second put is refused, and its writer is told that the version is taken."""
    jvm: Any = spark._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    file = jvm.org.apache.hadoop.fs.Path(f"s3a://{s3.BUCKET}/log/00000000000000000000.json")
    one, two = (jvm.sparkherd.delta.PutLogStore(conf) for _ in range(2))
    lines = jvm.java.util.Collections.singletonList
    one.write(file, lines("one").iterator(), *(False,), conf)
    with pytest.raises(Exception, match=r"java\.nio\.file\.FileAlreadyExistsException"):
        two.write(file, lines("two").iterator(), *(False,), conf)
    assert [stored.body for stored in bucket.objects.values()] == [b"one\n"]
    assert bucket.refused == ["log/00000000000000000000.json"]
    assert "log/00000000000000000000.json" not in bucket.missed


def test_a_commit_whose_answer_was_lost_is_found(spark: SparkSession, bucket: s3.Store) -> None:
    """S3A puts again and is refused because of its own first try; it is told that the version is its own."""
    jvm: Any = spark._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    file = jvm.org.apache.hadoop.fs.Path(f"s3a://{s3.BUCKET}/log/2.json")
    bucket.unanswered = 1
    lines = jvm.java.util.Collections.singletonList("one").iterator()
    jvm.sparkherd.delta.PutLogStore(conf).write(file, lines, *(False,), conf)
    assert bucket.refused == ["log/2.json"]
    assert [stored.body for stored in bucket.objects.values()] == [b"one\n"]


def test_a_commit_that_is_cut_off_is_not_published(spark: SparkSession, bucket: s3.Store) -> None:
    """What it is made of fails half-way."""
    jvm: Any = spark._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    file = jvm.org.apache.hadoop.fs.Path(f"s3a://{s3.BUCKET}/log/1.json")
    nothing_more = jvm.java.util.Scanner("a\n").useDelimiter("\n")
    nothing_more.close()
    with pytest.raises(Exception, match="Scanner closed"):
        jvm.sparkherd.delta.PutLogStore(conf).write(file, nothing_more, *(False,), conf)
    assert bucket.objects == {}


def test_a_log_store_for_one_driver_is_refused(spark: SparkSession, bucket: s3.Store, tmp_path: Path) -> None:
    """As Delta has one for each scheme of S3 that none is set for; nothing of the task is written."""
    with pytest.raises(SinkError, match=r"spark\.delta\.logStore\.s3\.impl=sparkherd\.delta\.PutLogStore"):
        Table(spark, tmp_path, f"s3://{s3.BUCKET}/other").owner(1)
    assert not any(b"sparkherd/g/t" in stored.body for stored in bucket.objects.values())
