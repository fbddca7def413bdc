"""A query goes on from the checkpoint that belongs to its task and its sink, or it does not start."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from worker.executor import Ended, QuerySpec, Reset, StartError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.spark.executor import SparkExecutor

ONCE = {"available_now": True}


class Story:
    """One task: run to the end of what there is, as often as a test wants, each time under a higher token."""

    def __init__(self, start: Any, flights: Any, sink: dict[str, Any], executor: SparkExecutor) -> None:
        self.query: Any = None
        self._start = start
        self._definition = {"source": flights.source, "sink": sink, "trigger": ONCE}
        self._executor = executor
        self._token = 0

    async def run(self, task: str = "t") -> None:
        self._token += 1
        self.query = await self._start(task, self._token, **self._definition)
        assert await self.query.ended() == Ended()

    async def reset(self, number: int, **options: Any) -> None:
        """Run it anew under its next token, as a manager's reset would have it."""
        self._token += 1
        spec = self.query.spec
        reset = Reset(number, options)
        spec = QuerySpec(spec.group, spec.task, self._token, spec.definition, reset)
        query = await self._executor.start(spec)
        assert await query.ended() == Ended()

    async def refused(self) -> str:
        """The one line that says why it does not start."""
        with pytest.raises(StartError) as refused:
            await self.run()
        text = str(refused.value)
        assert "\n" not in text
        assert "reset the task" in text
        return text

    @property
    def checkpoint(self) -> Path:
        return Path(self._executor._settings.checkpoint(self.query.spec.group, "t"))


@pytest.fixture
def story(start: Any, flights: Any, database: Any, executor: SparkExecutor) -> Story:
    return Story(start, flights, database.sink(), executor)


@pytest.fixture
def bare(start: Any, flights: Any, tmp_path: Path, executor: SparkExecutor) -> Story:
    """One with a sink of Spark's, which has no fence."""
    return Story(start, flights, {"format": "json", "options": {"path": str(tmp_path / "out")}}, executor)


async def test_a_checkpoint_that_was_lost(story: Story, flights: Any, database: Any) -> None:
    """An empty one counts from 0 again; the rows it would write are in the sink already."""
    flights.add(files=2)
    await story.run()
    query_id = story.query._handle.id
    shutil.rmtree(story.checkpoint)
    said = await story.refused()
    assert "runs on an empty checkpoint" in said
    assert f"the sink holds its rows up to batch 1 of checkpoint {query_id}" in said
    assert database.ids() == flights.ids


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


async def test_another_task_s_checkpoint(bare: Story, flights: Any, executor: SparkExecutor) -> None:
    """A copy of it under this task's name is refused, whatever the sink is."""
    flights.add()
    await bare.run("other")
    place = executor._settings.checkpoint
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
    assert "has been reset" in await refusal_of(story.run)
    assert story.checkpoint.with_name("t~1").is_dir()
    assert database.query("SELECT resets, batch_id, row_count FROM sparkherd_fence") == [(1, 1, 40)]


async def test_a_reset_from_given_offsets(story: Story, flights: Any, database: Any) -> None:
    """The options of a reset lie over the source's: here, only the files from a name on."""
    flights.add(files=3)
    await story.run()
    await story.reset(1, pathGlobFilter="000020.json")
    assert database.ids() == sorted([*flights.ids, *flights.ids[20:]])


async def refusal_of(start: Callable[[], Awaitable[None]]) -> str:
    with pytest.raises(StartError) as refused:
        await start()
    return str(refused.value)
