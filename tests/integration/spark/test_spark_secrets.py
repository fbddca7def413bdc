"""Secrets by reference in real queries: used, and found nowhere afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from worker.query_engine import QueryError
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from worker.sinks.base import Batch, Written
    from worker.spark.engine import SparkEngine

SECRET = "s3cr3t-Zx9-of-the-database"


@pytest.fixture
def secret_database(database: Any, secrets_folder: Path, tmp_path: Path) -> Any:
    """A database whose place is a secret, as a password in a URL would be."""
    folder = tmp_path / SECRET
    folder.mkdir()
    database.path = folder / "out.db"
    (secrets_folder / "place").write_text(f"{SECRET}\n")
    return database


def _leaks(root: Path) -> list[Path]:
    return [file for file in root.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]


async def test_a_secret_that_is_rotated_within_a_batch(
    *,
    start: Any,
    flights: Any,
    secret_database: Any,
    secrets_folder: Path,
    catch_up: Any,
    engine: SparkEngine,
    jvm_log: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fence goes by Spark's plan, which knows no secrets: rows are there once, and the secret nowhere."""
    write, crashes = SqlSink.write, iter([True])

    def write_and_crash(self: SqlSink, batch: Batch) -> Written:
        written = write(self, batch)
        if batch.mark.batch_id == 1 and next(crashes, False):
            raise OSError(f"cannot reach {secret_database.path}")
        return written

    monkeypatch.setattr(SqlSink, "write", write_and_crash)
    flights.add(files=3)
    url = f"sqlite:///{secret_database.path.parents[1]}/${{file:place}}/out.db"
    sink = {"format": "sql", "options": {"url": url, "table": "flights"}}
    query = await start(token=1, source=flights.source, sink=sink)
    ended = await query.ended()
    assert "cannot reach" in ended.cause
    assert SECRET not in ended.cause
    (secrets_folder / "place").write_text(f"./{SECRET}/.")
    query = await start(token=2, source=flights.source, sink=sink)
    await catch_up(query)
    assert secret_database.ids() == flights.ids
    checkpoint = Path(engine._settings.checkpoint(query.spec.group, query.spec.task))
    assert (checkpoint / "offsets" / "2").is_file()
    assert _leaks(checkpoint) == []
    assert SECRET not in jvm_log.all()


async def test_a_secret_in_sparks_own_words(
    start: Any, monkeypatch: pytest.MonkeyPatch, database: Any, jvm_log: Any
) -> None:
    """Spark quotes the option that was wrong; the cause does not, though it is longer than a cause may be."""
    monkeypatch.setenv("TESTED_PATH", f"/absent/{'x' * 480}{SECRET}")
    source = {"format": "text", "options": {"path": "${env:TESTED_PATH}"}}
    with pytest.raises(QueryError) as refused:
        await start(source=source, sink=database.sink())
    assert "PATH_NOT_FOUND" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)
    assert SECRET not in jvm_log.all()


async def test_a_secret_that_is_not_there(start: Any, database: Any, flights: Any) -> None:
    """Refused for good, with the place in the definition, before Spark sees anything of it."""
    source = {**flights.source, "options": {**flights.source["options"], "x": "${env:TESTED_ABSENT}"}}
    with pytest.raises(
        QueryError, match=r"^source\.options\.x: \$\{env:TESTED_ABSENT\} is not set"
    ) as refused:
        await start(source=source, sink=database.sink())
    assert refused.value.permanent
    assert not database.path.exists()


async def test_entry_points_are_given_secrets(
    start: Any, entrypoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their options; what they raise about them does not show them."""
    monkeypatch.setenv("TESTED_PW", SECRET)

    def run(context: Any) -> Any:
        raise ValueError(f"wrong password {context.options['pw']}")

    with pytest.raises(QueryError) as refused:
        await start(entrypoint=entrypoint(run), options={"pw": "${env:TESTED_PW}"})
    assert "ValueError: wrong password ***" in str(refused.value)
    assert SECRET not in str(refused.value)


async def test_sql_cannot_read_the_workers_variables(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """Spark would fill `${env:PATH}` in SQL by itself; here it stays what it is."""
    assert os.environ["PATH"]
    flights.add()
    select = "SELECT id, '${env:PATH}' AS carrier, delay FROM source"
    query = await start(source=flights.source, sql=select, sink=database.sink())
    await catch_up(query)
    assert database.query("SELECT DISTINCT carrier FROM flights") == [("${env:PATH}",)]
