"""Queries that owners have noted down, on a real server: found in their records, and ended there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from worker.query_engine import NotedQuery

ENDLESS: dict[str, Any] = {"source": {"format": "rate"}, "sink": {"format": "noop"}}


@pytest.fixture
def group(spec: Any) -> str:
    """That of the test's queries."""
    return str(spec("any", 1, **ENDLESS).group)


@pytest.fixture
async def noted(remote: Any, group: str) -> Any:
    """What is noted down in the group, by task."""

    async def read() -> dict[str, NotedQuery]:
        return {each.task: each for each in await remote.noted(group)}

    return read


async def test_a_query_is_noted_down_and_can_be_ended_by_anybody(start: Any, remote: Any, noted: Any) -> None:
    """That alone is: another one of the group goes on. To end it once more does no harm."""
    left, other = await start(task="_left.behind", token=4, **ENDLESS), await start(task="other", **ENDLESS)
    noted_down = await noted()
    assert {task: each.token for task, each in noted_down.items()} == {"_left.behind": 4, "other": 1}
    found = noted_down["_left.behind"]
    await remote.end_noted(found)
    assert (await left.ended()).cause.startswith("the query's session on the Spark Connect server is closed")
    assert other._handle.query.isActive
    await remote.end_noted(found)
    assert other._handle.query.isActive


async def test_a_younger_query_of_the_task_is_not_the_one_that_was_found(
    start: Any, remote: Any, noted: Any
) -> None:
    """The task was created again, or has moved, between the look and the end."""
    former = await start(task="again", token=4, **ENDLESS)
    found = (await noted())["again"]
    owner = await start(task="again", token=5, **ENDLESS)
    await former.ended()
    await remote.end_noted(found)
    assert owner._handle.query.isActive
    assert (await noted())["again"].token == 5


async def test_the_records_of_another_group_is_not_read(remote: Any) -> None:
    """Nor is a folder that is not there one that cannot be read."""
    assert await remote.noted("another") == ()


@pytest.fixture
def former_entries(settings: Any, group: str) -> None:
    """One as it was made before, and one that is none."""
    for task, text in {"old": str(uuid4()), "broken": "no id"}.items():
        folder = Path(settings.checkpoint_root, group, f"{task}~session")
        folder.mkdir(parents=True)
        (folder / "part-0.txt").write_text(text)


@pytest.mark.usefixtures("former_entries")
async def test_entries_of_former_versions_tell_no_token(start: Any, noted: Any) -> None:
    """Their queries are left to the next owner of the task, as ever; and so is what is no entry."""
    await start(task="new", token=4, **ENDLESS)
    assert list(await noted()) == ["new"]
