"""Packages and jars are looked at before any JVM is started."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from worker.query_engine import QueryError
from worker.spark.classic import jars
from worker.spark.classic.jars import with_jars, with_readers
from worker.spark.packages import Platform

if TYPE_CHECKING:
    from pathlib import Path

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 4.1.4 with Scala 2.13, whichever is installed."""
    monkeypatch.setattr(jars, "platform_here", lambda: Platform("4.1.4", "2.13", "3.4.2"))


def joined(
    conf: dict[str, str] | None = None,
    *,
    packages: tuple[str, ...] = (),
    paths: tuple[str, ...] = (),
    repositories: tuple[str, ...] = (),
) -> dict[str, str]:
    """Spark's settings with what the worker was given."""
    return with_jars(conf or {}, packages=packages, jars=paths, repositories=repositories)


def jar(path: Path) -> Path:
    """A jar with nothing in it."""
    with zipfile.ZipFile(path, "w"):
        return path


def test_nothing_is_added_for_nothing() -> None:
    """The settings are the user's."""
    assert joined({"spark.x": "1"}) == {"spark.x": "1"}


def test_what_is_given_is_added_to_what_spark_s_settings_name(tmp_path: Path) -> None:
    """A folder stands for its jars, and for those of the folders in it."""
    (tmp_path / "b").mkdir()
    jar(tmp_path / "b" / "b.jar"), jar(tmp_path / "a.jar")
    conf = {"spark.jars.packages": "a:b:1", "spark.jars": "/x.jar"}
    assert joined(conf, packages=(KAFKA,), paths=(str(tmp_path),), repositories=("https://m",)) == {
        "spark.jars.packages": f"a:b:1,{KAFKA}",
        "spark.jars": f"/x.jar,{tmp_path}/a.jar,{tmp_path}/b/b.jar",
        "spark.jars.repositories": "https://m",
    }


def test_a_package_that_cannot_work_here_is_refused() -> None:
    """By the setting's name, with what to do."""
    with pytest.raises(QueryError) as refused:
        joined(packages=("org.apache.spark:spark-avro_2.12:3.5.1",))
    assert str(refused.value).startswith(
        "--packages org.apache.spark:spark-avro_2.12:3.5.1: is for Scala 2.12"
    )


def test_jars_that_are_not_there_or_none(tmp_path: Path) -> None:
    """Each by its path."""
    (tmp_path / "text.jar").write_text("no jar")
    (tmp_path / "empty").mkdir()
    old = jar(tmp_path / "spark-avro_2.12-3.5.1.jar")
    for path, fault in (
        (tmp_path / "gone.jar", "is not there"),
        (tmp_path / "text.jar", "is no jar"),
        (tmp_path / "empty", "is a folder without any jar"),
        (old, "is for Scala 2.12"),
    ):
        with pytest.raises(QueryError, match=fault) as refused:
            joined(paths=(str(path),))
        assert str(refused.value).startswith(f"--jars {path}: ")


def test_our_reader_of_json_is_added_if_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, whoever has named it; a checkout without `make jars` has none."""
    monkeypatch.setattr(jars, "JAR", tmp_path / "sparkherd-json.jar")
    assert with_readers({}) == {}
    jar(tmp_path / "sparkherd-json.jar")
    assert with_readers({}) == {"spark.jars": f"{tmp_path}/sparkherd-json.jar"}
    assert with_readers({"spark.jars": "/x.jar"})["spark.jars"] == f"/x.jar,{tmp_path}/sparkherd-json.jar"
    named = {"spark.jars": "hdfs:///mine/sparkherd-json.jar"}
    assert with_readers(named) == named
