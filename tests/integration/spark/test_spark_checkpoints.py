"""A query goes on from the checkpoint that belongs to its task and its sink, or it does not start."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.clientserver import ClientServerConnection

from protocol.messages.tasks import EARLIEST, TaskReset
from tests.contracts.checkpoints import refuses_one_that_is_behind
from worker.query_engine import QueryError
from worker.spark.classic.checkpoint import HadoopCheckpoint
from worker.spark.kafka.source_offsets import SOURCES_FILE, Noted, noted, read_note

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.messages.tasks import Offsets
    from worker.spark.engine import SparkEngine

ONCE = {"available_now": True}


class Story:
    """One task: run to the end of what there is, as often as a test wants, each time under a higher token."""

    def __init__(self, start: Any, source: dict[str, Any], sink: dict[str, Any], engine: SparkEngine) -> None:
        self.query: Any = None
        self._start = start
        self._definition = {"source": source, "sink": sink, "trigger": ONCE}
        self._engine = engine
        self._token = 0

    async def run(self, task: str = "t") -> None:
        self._token += 1
        self.query = await self._start(task, self._token, **self._definition)
        assert await self.query.ended() is None

    async def reset(self, number: int, offsets: Offsets = EARLIEST) -> None:
        """Run it anew under its next token, as a manager's reset would have it."""
        self._token += 1
        reset = TaskReset(number, offsets)
        spec = replace(self.query.spec, token=self._token, reset=reset)
        query = await self._engine.start(spec)
        assert await query.ended() is None

    async def refused(self) -> str:
        """The one line that says why it does not start."""
        with pytest.raises(QueryError) as refused:
            await self.run()
        text = str(refused.value)
        assert "\n" not in text
        assert "reset the task" in text
        return text

    @property
    def checkpoint(self) -> Path:
        return Path(self._engine._settings.checkpoint(self.query.spec.group, "t"))


@pytest.fixture
def story(start: Any, flights: Any, database: Any, engine: SparkEngine) -> Story:
    return Story(start, flights.source, database.sink(), engine)


@pytest.fixture
def bare(start: Any, flights: Any, tmp_path: Path, engine: SparkEngine) -> Story:
    """One with a sink of Spark's, which has no fence."""
    return Story(
        start, flights.source, {"format": "json", "options": {"path": str(tmp_path / "out")}}, engine
    )


async def test_a_checkpoint_that_was_lost(story: Story, flights: Any, database: Any) -> None:
    """An empty one counts from 0 again; the rows it would write are in the sink already."""
    flights.add(files=2)
    await story.run()
    query_id = story.query._handle.query.id
    shutil.rmtree(story.checkpoint)
    said = await story.refused()
    assert "runs on an empty checkpoint" in said
    assert f"the sink holds its rows up to batch 1 of checkpoint {query_id}" in said
    assert database.ids() == flights.ids


async def test_a_query_says_how_far_the_task_had_come(story: Story, flights: Any) -> None:
    """By its checkpoint: the owner before may have died before it could tell of its last batch."""
    flights.add(files=2)
    await story.run()
    assert (story.query.committed, story.query.progress().batch_id) == (None, 1)
    flights.add()
    await story.run()
    assert (story.query.committed, story.query.progress().batch_id) == (1, 2)


async def test_what_spark_had_begun_is_swept(story: Story, flights: Any) -> None:
    """By the next query; one that finds another task's folder leaves it alone."""
    flights.add(files=2)
    await story.run()
    logs = [story.checkpoint / each for each in ("offsets", "commits", "sources/0")]
    begun = [
        log / f"{dot}.1.0f{at}.tmp{crc}"
        for at, log in enumerate(logs)
        for dot, crc in (("", ""), (".", ".crc"))
    ]
    kept = [story.checkpoint / "offsets" / name for name in (".mine", "1.tmp", ".1.crc")]
    for file in (*begun, *kept):
        file.touch()
    (story.checkpoint / "sparkherd.json").write_text(json.dumps({"group": "g", "task": "x", "resets": 0}))
    await story.refused()
    assert all(file.exists() for file in begun)
    (story.checkpoint / "sparkherd.json").unlink()
    flights.add()
    await story.run()
    assert [file for file in (*begun, *kept) if file.exists()] == kept


async def test_a_sink_that_was_lost(story: Story, flights: Any, database: Any) -> None:
    """A checkpoint that is ahead of the sink means that rows are gone; this is said, not passed over."""
    flights.add(files=2)
    await story.run()
    for file in database.path.parent.glob("out.db*"):
        file.unlink()
    assert "is at batch 2, but the last batch in the sink is none" in await story.refused()
    assert database.ids() == []


async def test_an_older_copy_of_the_checkpoint(
    story: Story, flights: Any, database: Any, tmp_path: Path
) -> None:
    """It would plan batches of other files under numbers that the sink has seen."""
    flights.add()
    await story.run()
    shutil.copytree(story.checkpoint, tmp_path / "copy")
    flights.add(files=2)
    await story.run()
    newest = shutil.copytree(story.checkpoint, tmp_path / "newest")
    shutil.rmtree(story.checkpoint)
    shutil.copytree(tmp_path / "copy", story.checkpoint)
    assert "is at batch 1 of an older copy of checkpoint" in await story.refused()
    shutil.rmtree(story.checkpoint)
    shutil.copytree(newest, story.checkpoint)
    flights.add()
    await story.run()
    assert database.ids() == flights.ids


async def test_a_batch_that_was_planned_anew(story: Story, flights: Any, database: Any) -> None:
    """The number of the last batch fits, but it is not the batch that was written under it."""
    flights.add(files=2)
    await story.run()
    (story.checkpoint / "commits/1").unlink()
    entry = story.checkpoint / "offsets/1"
    (story.checkpoint / "offsets/.1.crc").unlink()
    entry.write_text(entry.read_text().replace('"batchTimestampMs":', '"batchTimestampMs":1'))
    assert "is at batch 1 of an older copy" in await story.refused()
    assert database.ids() == flights.ids


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "metadata").unlink(), "its file metadata is missing"),
        (lambda folder: (folder / "metadata").write_text("{"), "metadata cannot be read"),
        (lambda folder: (folder / "offsets/1").write_text("v1\n{"), "offsets/1 cannot be read"),
        (lambda folder: (folder / "commits/1").write_text(""), "commits/1 cannot be read"),
        (lambda folder: (folder / "offsets/1").unlink(), "there is no entry offsets/1"),
        (lambda folder: shutil.rmtree(folder / "offsets"), "there is no entry offsets/1"),
        (lambda folder: (folder / "sparkherd.json").write_text("?"), "sparkherd.json cannot be read"),
    ],
    ids=["no metadata", "bad metadata", "cut offsets", "cut commits", "an entry gone", "no offsets", "owner"],
)
@pytest.mark.parametrize("checksums", [True, False])
async def test_a_damaged_checkpoint(
    *, bare: Story, flights: Any, damage: Any, said: str, checksums: bool
) -> None:
    """Whatever the sink is, and whether or not there are Hadoop's checksums to tell."""
    flights.add(files=2)
    await bare.run()
    if not checksums:
        for file in bare.checkpoint.rglob(".*.crc"):
            file.unlink()
    damage(bare.checkpoint)
    text = await bare.refused()
    assert text.startswith(f"the checkpoint {bare.checkpoint} is damaged: ")
    assert said in text


async def test_another_task_s_checkpoint(bare: Story, flights: Any, engine: SparkEngine) -> None:
    """A copy of it under this task's name is refused, whatever the sink is."""
    flights.add()
    await bare.run("other")
    place = engine._settings.checkpoint
    group = bare.query.spec.group
    shutil.copytree(place(group, "other"), place(group, "t"))
    text = await bare.refused()
    assert "is of another task" in text
    assert json.dumps("other") in text


async def test_a_reset_reads_all_again(story: Story, flights: Any, database: Any) -> None:
    """It has a checkpoint of its own; the rows written before stay, and done twice it is done once."""
    flights.add(files=2)
    await story.run()
    await story.reset(1)
    assert database.ids() == sorted(flights.ids * 2)
    await story.reset(1)
    assert database.ids() == sorted(flights.ids * 2)
    assert "its manager does not" in await refusal_of(story.run)
    assert story.checkpoint.with_name("t~1").is_dir()
    assert database.query("SELECT resets, batch_id, row_count FROM sparkherd_fence") == [(1, 1, 40)]


async def test_a_reset_from_given_offsets(start: Any, database: Any, engine: SparkEngine) -> None:
    """The options of a reset take the place of the source's own, whatever their case."""
    options = {"rowsPerBatch": 3, "startTimestamp": 1000}
    story = Story(start, {"format": "rate-micro-batch", "options": options}, database.sink("rates"), engine)
    await story.run()
    await story.reset(1, {"STARTTIMESTAMP": 86_400_000})
    days = database.query("SELECT date(timestamp), COUNT(*) FROM rates GROUP BY 1 ORDER BY 1")
    assert days == [("1970-01-01", 3), ("1970-01-02", 3)]


async def test_a_reset_of_an_upsert(start: Any, flights: Any, database: Any, engine: SparkEngine) -> None:
    """Rows that are read again replace themselves; what the source no longer has stays."""
    story = Story(start, flights.source, database.sink(mode="upsert", key=["id"]), engine)
    flights.add(files=2)
    await story.run()
    (flights.folder / "000000.json").unlink()
    flights.add()
    await story.reset(1)
    assert database.ids() == flights.ids


async def test_a_reset_of_fenced_files(start: Any, flights: Any, tmp_path: Path, engine: Any) -> None:
    """The files of before stay beside the new ones; once they are removed, every row is there once."""
    out = tmp_path / "out"
    sink = {"format": "fenced_files", "options": {"path": str(out), "format": "json"}}
    story = Story(start, flights.source, sink, engine)
    flights.add(files=2)
    await story.run()
    await story.reset(1)
    assert ids_in(out) == sorted(flights.ids * 2)
    for batch in out.iterdir():
        shutil.rmtree(batch)
    await story.reset(2)
    assert ids_in(out) == flights.ids


async def test_a_reset_of_spark_s_file_sink(bare: Story, flights: Any, tmp_path: Path) -> None:
    """It leaves out batches whose numbers it has seen, as the answer to a reset warns."""
    out = tmp_path / "out"
    flights.add(files=2)
    await bare.run()
    (flights.folder / "000000.json").unlink()
    flights.add(files=2)
    await bare.reset(1)
    assert ids_in(out) == [*range(20), *range(30, 40)]
    shutil.rmtree(out)
    await bare.reset(2)
    assert ids_in(out) == flights.ids[10:]


async def test_a_zombie_of_before_a_reset(
    start: Any, flights: Any, database: Any, catch_up: Any, engine: SparkEngine
) -> None:
    """Its query runs on when the task begins anew; its next batch is refused, and it cannot start again."""
    flights.add()
    zombie = await start(token=1, source=flights.source, sink=database.sink())
    await catch_up(zombie)
    anew = await engine.start(replace(zombie.spec, token=3, reset=TaskReset(1)))
    await catch_up(anew)
    flights.add()
    assert (await zombie.ended()).fenced
    await catch_up(anew)
    assert database.ids() == sorted([*flights.ids, *flights.ids[:10]])
    with pytest.raises(QueryError, match="token 1 is older than 3"):
        await engine.start(zombie.spec)
    await anew.stop(0)


async def test_an_entry_point_is_told_where_to_begin(
    start: Any, flights: Any, database: Any, entrypoint: Any, engine: SparkEngine
) -> None:
    """The offsets of a reset lie over its own options."""
    told = []

    def run(context: Any) -> Any:
        told.append(dict(context.options))
        frame = context.spark.readStream.schema("id LONG").json(context.options["path"])
        return context.sink(frame)

    flights.add()
    options = {"path": str(flights.folder), "since": "2013-01-01"}
    query = await start(entrypoint=entrypoint(run), options=options, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    spec = replace(query.spec, token=2)
    for reset in (TaskReset(1, {"since": "2013-06-01"}), TaskReset(2)):
        query = await engine.start(replace(spec, reset=reset))
        assert await query.ended() is None
    assert told == [options, options | {"since": "2013-06-01"}, options]


def ids_in(folder: Path) -> list[int]:
    """The ids in all files that readers of the folder see."""
    files = [path for path in folder.rglob("*.json") if not path.name.startswith(("_", "."))]
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


async def refusal_of(start: Callable[[], Awaitable[None]]) -> str:
    with pytest.raises(QueryError) as refused:
        await start()
    return str(refused.value)


async def test_a_checkpoint_that_does_not_know_how_far_the_task_has_come(
    engine: SparkEngine, start: Any, spec: Any, flights: Any, database: Any
) -> None:
    """It is refused for good before its fence is raised: the former token may still write."""
    await refuses_one_that_is_behind(engine, start, spec, flights, database)


@pytest.mark.parametrize(
    ("option", "is_told"), [("asyncProgressTrackingEnabled", False), ("asyncprogresstrackingenabled", True)]
)
async def test_an_entry_point_whose_checkpoint_lags_behind(
    *, option: str, is_told: bool, start: Any, entrypoint: Any
) -> None:
    """It sets that at its writer: by Spark's query it is known that no checkpoint has to have come so far."""

    def run(context: Any) -> Any:
        frame = context.spark.readStream.format("rate").load()
        return frame.writeStream.format("noop").option(option, "true")

    query = await start(entrypoint=entrypoint(run))
    assert (query.checkpoint is not None) == is_told


def test_a_file_that_is_put_into_a_checkpoint_is_whole_or_what_it_was_before(
    engine: SparkEngine, tmp_path: Path
) -> None:
    """It is written beside and renamed, over one of an earlier version with its checksum, too."""
    backend: Any = engine._backend
    folder = backend.checkpoint(str(tmp_path / "checkpoint"))
    stream = folder._files.create(folder._path(f"{folder.place}/note"))
    stream.write(bytearray(b"the former"))
    stream.close()
    with pytest.raises(UnicodeEncodeError):
        folder.create("note", "cannot be written \ud800")
    assert folder.read("note") == "the former"
    folder.create("note", "the newer one")
    assert folder.read("note") == "the newer one"
    assert {path.name for path in Path(folder.place).iterdir()} == {"note", ".note.crc"}
    folder.create("another", "made with its folder")
    assert folder.read("another") == "made with its folder"
    (Path(folder.place) / "as_spark_connect_does").mkdir()
    (Path(folder.place) / "as_spark_connect_does" / "part-0.txt").write_text("the former")
    folder.create("as_spark_connect_does", "the newer one")
    assert folder.read("as_spark_connect_does") == "the newer one"


def test_a_note_beside_the_checksum_of_another_is_passed_over_and_written_anew(
    engine: SparkEngine, tmp_path: Path
) -> None:
    """As a worker leaves it that is killed between the two renames; one knows less without it."""
    backend: Any = engine._backend
    folder = backend.checkpoint(str(tmp_path / "checkpoint"))
    folder.create(SOURCES_FILE, '{"order": ["sources.a"]}')
    (tmp_path / "checkpoint" / SOURCES_FILE).write_text('{"order": ["sources.b"]}')
    with pytest.raises(QueryError, match="ChecksumException"):
        folder.read(SOURCES_FILE)
    assert read_note(folder) is None
    assert noted(folder) == Noted()
    folder.create(SOURCES_FILE, '{"order": ["sources.c"]}')
    assert read_note(folder) == Noted(["sources.c"])


def test_checkpoints_are_written_by_the_manager_that_spark_is_told_to_take(
    engine: SparkEngine, tmp_path: Path
) -> None:
    """Stores without renames have one of their own, which the session of the query names."""
    backend: Any = engine._backend
    session = backend.spark.newSession()
    session.conf.set("spark.sql.streaming.checkpointFileManagerClass", "no.such.Manager")
    folder = HadoopCheckpoint(session, str(tmp_path / "checkpoint"))
    with pytest.raises(QueryError, match=r"cannot be written to: \[CANNOT_LOAD_CHECKPOINT"):
        folder.create("note", "text")


@pytest.mark.parametrize("name", ["checkpoint", "a, b/77, c", "[d], e]"])
def test_the_last_entry_of_a_log_is_found_whatever_its_folder_is_called(
    engine: SparkEngine, tmp_path: Path, name: str
) -> None:
    """Among what is none, and in a log that is empty or not there."""
    backend: Any = engine._backend
    folder = backend.checkpoint(str(tmp_path / name))
    assert folder.last("offsets") is None
    log = tmp_path / name / "offsets"
    log.mkdir(parents=True)
    assert folder.last("offsets") is None
    (log / "7").touch()
    assert folder.last("offsets") == 7
    for each in ("9", "10", "11.compact", ".12.crc", ".13.0a.tmp", "14, 15"):
        (log / each).touch()
    assert folder.last("offsets") == 10


def test_a_long_log_takes_no_more_questions_than_a_short_one(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark keeps a hundred entries of each, and each start of a query looks for the last."""
    asked: list[str] = []
    ask = ClientServerConnection.send_command

    def counted(self: Any, command: str) -> Any:
        asked.append(command)
        return ask(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    backend: Any = engine._backend
    (log := tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    folder = backend.checkpoint(str(log.parent))
    numbers = []
    for until in (1, 100):
        for number in range(until):
            (log / str(number)).touch()
        asked.clear()
        assert folder.last("offsets") == until - 1
        numbers.append(len([each for each in asked if not each.startswith("m\n")]))  # Java's garbage
    assert numbers[0] == numbers[1] < 15
