"""Which offsets of a checkpoint are whose, without Kafka and without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import parse_definition
from worker.lag.missing import Read
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.kafka.source_offsets import SOURCES_FILE, SourceOffsets, committed_by_source

if TYPE_CHECKING:
    from collections.abc import Mapping

KAFKA = {"format": "kafka", "options": {"subscribe": "t"}}
ORDER = ["sources.b", None, "sources.a"]
"""Of the plan: another one than the definition's."""
IDS = {"cluster": {"t": ["id"]}}
TWO = 'v1\n{}\n{"t":{"0":5}}\n7\n{"t":{"0":23}}'


class Folder(CheckpointFolder):
    """A checkpoint in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__("folder")
        self.files = files
        self.asked: list[str] = []

    def read(self, name: str) -> str | None:
        self.asked.append(name)
        return self.files.get(name)

    def last(self, log: str) -> int | None:
        numbers = [int(name.split("/")[1]) for name in self.files if name.startswith(f"{log}/")]
        return max(numbers, default=None)

    def create(self, name: str, text: str) -> None:
        raise AssertionError(f"{name} is written here: {text}")


def definition(*views: str) -> Any:
    """A task that reads these views of one topic, and some that is no topic's."""
    sources: dict[str, Any] = dict.fromkeys(views, KAFKA) | {"r": {"format": "rate"}}
    document = {"sources": sources, "sql": "SELECT 1", "sink": {"format": "noop"}}
    return parse_definition(json.dumps(document).encode())


SINGLE = parse_definition(json.dumps({"source": KAFKA, "sink": {"format": "noop"}}).encode())


def reads(folder: Folder, place: str, order: Any = ORDER, of: Any = None) -> Any:
    """What is known of a source of the definition."""
    offsets = SourceOffsets.of(folder, IDS)
    return offsets.reads(place, of or definition("a", "b"), order)


def test_each_source_has_its_own_line() -> None:
    """Though both name one topic."""
    folder = Folder({"offsets/3": TWO, "commits/3": "v1\n{}"})
    assert reads(folder, "sources.a") == [Read({"t": {0: 23}}, {"t": {0: 23}}, IDS)]
    assert reads(folder, "sources.b") == [Read({"t": {0: 5}}, {"t": {0: 5}}, IDS)]


def test_a_batch_that_was_begun_goes_from_the_last_finished_one_to_its_plan() -> None:
    """Which are two entries."""
    later = 'v1\n{}\n{"t":{"0":6}}\n8\n{"t":{"0":23}}'
    folder = Folder({"offsets/3": TWO, "commits/3": "v1\n{}", "offsets/4": later})
    assert reads(folder, "sources.b") == [Read({"t": {0: 5}}, {"t": {0: 6}}, IDS)]


def test_the_first_batch_goes_from_where_the_source_has_begun() -> None:
    """Which it keeps by itself, under its number in the plan."""
    begun = {"sources/0/0": '\0v1\n{"t":{"0":2}}', "sources/2/0": 'v1\n{"t":{"0":9}}'}
    folder = Folder({"offsets/0": TWO, **begun})
    assert reads(folder, "sources.b") == [Read({"t": {0: 2}}, {"t": {0: 5}}, IDS)]
    assert reads(folder, "sources.a") == [Read({"t": {0: 9}}, {"t": {0: 23}}, IDS)]
    unplanned = Folder({"sources/0/0": '\0v1\n{"t":{"0":2}}'})
    assert reads(unplanned, "sources.b") == [Read({"t": {0: 2}}, {}, IDS)]
    assert reads(unplanned, "sources.a") == []


@pytest.mark.parametrize("line", ["-", '{"sources":{"0":{"t":{"0":5}}}}'])
def test_a_line_that_says_nothing_is_not_made_up_for(line: str) -> None:
    """Once a batch is finished nobody goes by where the source began, nor by its options."""
    entry = f"v1\n{{}}\n{line}"
    folder = Folder({"offsets/3": entry, "commits/3": "v1\n{}", "sources/0/0": 'v1\n{"t":{"0":2}}'})
    assert reads(folder, "source", (), SINGLE) == [Read({}, {}, IDS)]


def test_where_a_source_has_begun_is_not_asked_once_it_has_finished_a_batch() -> None:
    """Each file may be a request to a store."""
    folder = Folder({"offsets/3": 'v1\n{}\n{"t":{"0":5}}', "commits/3": "v1\n{}", "sources/0/0": "x"})
    assert reads(folder, "source", (), SINGLE) == [Read({"t": {0: 5}}, {"t": {0: 5}}, IDS)]
    assert "sources/0/0" not in folder.asked


@pytest.mark.parametrize("order", [(), ["sources.a", "sources.b"]])
def test_where_it_is_not_known_whose_the_lines_are_nothing_is_held_against_a_source(order: Any) -> None:
    """Nor what its options say of where to begin: a wrong refusal stops a healthy task."""
    assert reads(Folder({"offsets/0": TWO}), "sources.a", order) == [Read()]


def test_a_new_query_begins_where_its_options_say() -> None:
    """There is nothing in its checkpoint."""
    assert reads(Folder({}), "sources.a") == []
    assert reads(Folder({}), "sources.a", ()) == []
    assert reads(Folder({}), "source", (), SINGLE) == []


def test_a_single_source_has_all_lines() -> None:
    """However often it is read, and whoever noted what."""
    folder = Folder({"offsets/3": 'v1\n{}\n{"t":{"0":5}}\n{"t":{"0":4}}', "commits/3": "v1\n{}"})
    found = reads(folder, "source", (), SINGLE)
    assert [each.begins for each in found] == [{"t": {0: 5}}, {"t": {0: 4}}]
    assert committed_by_source(folder, SINGLE) == {"source": {"t": {0: 4}}}


def test_without_a_query_the_order_is_the_one_that_was_noted() -> None:
    """Of a task of which none was noted, nobody knows."""
    files = {"offsets/3": TWO, "commits/3": "v1\n{}"}
    assert committed_by_source(Folder(files), definition("a", "b")) == {}
    files[SOURCES_FILE] = json.dumps({"order": ORDER})
    by_source = {"sources.a": {"t": {0: 23}}, "sources.b": {"t": {0: 5}}}
    assert committed_by_source(Folder(files), definition("a", "b")) == by_source
