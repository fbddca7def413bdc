"""What a start asks brokers, and what it notes of them, without Kafka and without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog

from definition.document import parse_definition
from worker.lag.measure import PartitionState
from worker.query_engine import QueryError, ignore_step
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.kafka.source_offsets import SOURCES_FILE
from worker.spark.kafka.sources import require_sources, watch_sources, with_patience
from worker.spark.starts import StartSteps

NOTED = {"ids": {"here": {"t": ["first"]}}}


class Folder(CheckpointFolder):
    """A checkpoint in memory, whose last batch ended at offset 4 of the topic t."""

    def __init__(self) -> None:
        super().__init__("folder")
        self.files = {"offsets/3": 'v1\n{}\n{"t":{"0":4}}'}
        self.writes = 0

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def last(self, log: str) -> int | None:
        return 3 if log in {"commits", "offsets"} else None

    def create(self, name: str, text: str) -> None:
        self.writes += 1
        self.files[name] = text


class Brokers:
    """One topic of one partition."""

    def __init__(self) -> None:
        self.topic_id: str | None = "first"
        self.cluster_id: str | None = "here"
        self.asked = 0
        self.trouble: QueryError | None = None
        self.is_led = True

    def states(self, _options: Any, _committed: Any, _purpose: Any) -> Any:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        known = PartitionState(0, 10, topic_id=self.topic_id, cluster_id=self.cluster_id)
        return {"t": {0: known, 1: known if self.is_led else None}}


def definition(**options: Any) -> Any:
    """A task that reads t."""
    return definition_by(subscribe="t", **options)


def definition_by(**options: Any) -> Any:
    """A task whose source has these options."""
    source = {"format": "kafka", "options": options}
    return parse_definition(json.dumps({"source": source, "sink": {"format": "noop"}}).encode())


def several(*views: str) -> Any:
    """A task that reads t in each of these views."""
    source = {"format": "kafka", "options": {"subscribe": "t"}}
    document = {"sources": dict.fromkeys(views, source), "sql": "SELECT 1", "sink": {"format": "noop"}}
    return parse_definition(json.dumps(document).encode())


def test_a_partition_that_nobody_answers_for_is_an_outage_and_told_by_its_number() -> None:
    """Spark would wait for it in its first batch, and say less."""
    brokers, folder = Brokers(), Folder()
    brokers.is_led = False
    with pytest.raises(QueryError) as told:
        start(brokers, folder)
    assert told.value.cause.startswith("source: topic t, partition 1 has no leader")
    assert (told.value.outage, told.value.permanent, folder.writes) == (True, False, 0)


def start(brokers: Any, folder: Folder, order: Any = (), of: Any = None, **options: Any) -> None:
    """Ask, as a start does."""
    require_sources(brokers, of or definition(**options), folder, order, ignore_step)


def test_the_ids_of_topics_are_noted_once_and_held_against_those_of_later() -> None:
    """A topic that was made anew is refused, until its loss is accepted: then it is the one."""
    brokers, folder = Brokers(), Folder()
    start(brokers, folder)
    start(brokers, folder)
    assert json.loads(folder.files[SOURCES_FILE]) == NOTED
    assert folder.writes == 1
    brokers.topic_id = "second"
    with pytest.raises(QueryError, match=r"^source: \[KAFKA_DATA_LOSS\] topic t was made anew") as refused:
        start(brokers, folder)
    assert refused.value.permanent
    start(brokers, folder, failOnDataLoss=False)
    start(brokers, folder)
    assert json.loads(folder.files[SOURCES_FILE]) == {"ids": {"here": {"t": ["second"]}}}


def test_a_note_that_the_store_does_not_give_out_is_written_anew() -> None:
    """Hadoop refuses one with a checksum that is not its own, and only says that it cannot be read."""

    class Torn(Folder):
        """Its note has the checksum of the one before."""

        def read(self, name: str) -> str | None:
            if name == SOURCES_FILE and not self.writes:
                raise QueryError("the checkpoint is damaged: ChecksumException")
            return super().read(name)

    brokers, folder = Brokers(), Torn()
    with structlog.testing.capture_logs() as logs:
        start(brokers, folder)
    assert [(each["log_level"], each["file"]) for each in logs] == [("warning", SOURCES_FILE)]
    assert json.loads(folder.files[SOURCES_FILE]) == NOTED


def test_a_topic_whose_deletion_was_accepted_is_forgotten() -> None:
    """One of that name that is made later, and read from its beginning, is no other than was known."""

    class Gone(Brokers):
        """Without the topic."""

        def states(self, *asked: Any) -> Any:
            super().states(*asked)
            return {}

    brokers, folder = Brokers(), Folder()
    start(brokers, folder)
    by_pattern = {"subscribePattern": "t.*"}
    with pytest.raises(QueryError, match="the source has no such partition"):
        start(Gone(), folder, of=definition_by(**by_pattern))
    assert json.loads(folder.files[SOURCES_FILE]) == NOTED
    start(Gone(), folder, of=definition_by(**by_pattern, failOnDataLoss=False))
    assert json.loads(folder.files[SOURCES_FILE]) == {}
    folder.files["offsets/3"] = 'v1\n{}\n{"t":{"0":3,"1":3}}'
    brokers.topic_id = "second"
    start(brokers, folder, of=definition_by(**by_pattern))
    assert json.loads(folder.files[SOURCES_FILE]) == {"ids": {"here": {"t": ["second"]}}}


def test_what_is_wrong_with_an_option_is_told_with_its_place() -> None:
    """As it is written, for whoever asks brokers knows the option and not the definition."""
    brokers = Brokers()
    brokers.trouble = QueryError.at("subscribePattern", "takes too long", permanent=True)
    with pytest.raises(QueryError) as told:
        start(brokers, Folder(), of=definition_by(SUBSCRIBEPattern=".*"))
    assert told.value.cause == "source.options.SUBSCRIBEPattern: takes too long"
    assert (told.value.path, told.value.permanent) == ("source.options.SUBSCRIBEPattern", True)


@pytest.mark.parametrize("note", ['{"ids": {"here": {"t": "fi', '{"ids": 7}', ""])
def test_a_note_that_cannot_be_read_is_written_anew(note: str) -> None:
    """And told of, for a topic that was made anew since is not known."""
    brokers, folder = Brokers(), Folder()
    folder.files[SOURCES_FILE] = note
    with structlog.testing.capture_logs() as logs:
        start(brokers, folder)
    assert [(each["log_level"], each["file"]) for each in logs] == [("warning", SOURCES_FILE)]
    assert json.loads(folder.files[SOURCES_FILE]) == NOTED


def test_brokers_that_tell_no_ids_for_once_leave_those_that_were_noted() -> None:
    """An old broker of a cluster, or one behind a gateway; a topic made anew is known afterwards."""
    brokers, folder = Brokers(), Folder()
    start(brokers, folder)
    for unknown in ({"topic_id": None}, {"cluster_id": None}):
        quiet = Brokers()
        vars(quiet).update(unknown)
        start(quiet, folder)
    assert json.loads(folder.files[SOURCES_FILE]) == NOTED
    brokers.topic_id = "second"
    with pytest.raises(QueryError, match="made anew"):
        start(brokers, folder)


def test_a_source_that_is_called_otherwise_has_the_ids_of_before() -> None:
    """From `source` to one of `sources`: its offsets go on, so its topics are the same."""
    brokers, folder = Brokers(), Folder()
    start(brokers, folder)
    brokers.topic_id = "second"
    with pytest.raises(QueryError, match=r"^sources\.a: .* made anew"):
        start(brokers, folder, of=several("a"))


def test_a_task_that_is_moved_to_a_mirror_goes_on_and_the_ids_of_both_clusters_are_noted() -> None:
    """Each cluster gives out ids of its own."""
    brokers, folder = Brokers(), Folder()
    start(brokers, folder)
    brokers.topic_id, brokers.cluster_id = "copy", "there"
    start(brokers, folder)
    assert json.loads(folder.files[SOURCES_FILE]) == {
        "ids": {"here": {"t": ["first"]}, "there": {"t": ["copy"]}}
    }
    brokers.topic_id = "second"
    with pytest.raises(QueryError, match=r"its id was copy, and is second"):
        start(brokers, folder)


def test_clusters_that_were_set_up_with_one_id_are_not_taken_for_each_other() -> None:
    """Images of Kafka bring an id along; two sources of one topic's name are two topics then."""

    class Two(Brokers):
        """Each asked by turns."""

        def states(self, *asked: Any) -> Any:
            self.topic_id = "second" if self.topic_id == "first" else "first"
            return super().states(*asked)

    brokers, folder = Two(), Folder()
    for _ in range(2):
        start(brokers, folder, (), several("a", "b"))
    assert json.loads(folder.files[SOURCES_FILE]) == {"ids": {"here": {"t": ["first", "second"]}}}


def test_topics_that_the_checkpoint_is_not_about_are_forgotten() -> None:
    """A pattern may find another topic every day."""
    brokers, folder = Brokers(), Folder()
    folder.files[SOURCES_FILE] = json.dumps(
        {"ids": {"here": {"t": ["first"], "old": ["x"]}, "gone": {"u": ["y"]}}}
    )
    start(brokers, folder)
    assert json.loads(folder.files[SOURCES_FILE]) == NOTED


def test_a_source_that_the_query_does_not_read_is_neither_asked_for_nor_watched() -> None:
    """Its brokers, its topics and where it would begin are nothing to the others."""
    brokers, folder = Brokers(), Folder()
    start(brokers, folder, ["sources.a"], several("a", "b"))
    assert brokers.asked == 1
    start(brokers, folder, [None], several("a", "b"))
    assert brokers.asked == 1
    start(brokers, folder, (), several("a", "b"))
    assert brokers.asked == 3
    clusters: Any = Clusters()
    assert watch_sources(clusters, several("a", "b"), ["sources.b"]) == clusters.open


def test_a_start_that_was_given_up_while_brokers_were_asked_notes_nothing() -> None:
    """A newer owner may have noted something by then."""
    folder = Folder()
    steps = StartSteps(ignore_step)

    class Slow(Brokers):
        """Answers after somebody has lost patience."""

        def states(self, *asked: Any) -> Any:
            steps.give_up()
            return super().states(*asked)

    slow: Any = Slow()
    with pytest.raises(QueryError, match="was given up"):
        require_sources(slow, definition(), folder, (), steps.at)
    assert folder.writes == 0


def test_what_brokers_say_is_told_with_the_place_of_the_source() -> None:
    """And stays an outage."""
    brokers = Brokers()
    brokers.trouble = QueryError("no broker answers", outage=True)
    with pytest.raises(QueryError, match=r"^source: no broker answers") as refused:
        start(brokers, Folder())
    assert (refused.value.outage, refused.value.permanent) == (True, False)
    start(None, Folder())


def test_where_nobody_can_ask_spark_s_own_source_is_less_patient() -> None:
    """Three attempts of a minute each would be three minutes without a cause; what a source says stays."""
    [source] = with_patience(definition()).views.values()
    options = source.options
    assert options["kafka.default.api.timeout.ms"] == "20000"
    assert options["kafka.request.timeout.ms"] == "15000"
    assert options["fetchOffset.numRetries"] == "1"
    own = {"kafka.Request.timeout.ms": "60000", "FetchOffset.numRetries": 5}
    [source] = with_patience(definition(**own)).views.values()
    assert source.options == {"subscribe": "t", **own}


def test_other_sources_are_left_as_they_are() -> None:
    """Of several, those of Kafka's alone."""
    kafka = {"format": "kafka", "options": {"subscribe": "t"}}
    rate = {"format": "rate", "options": {"rowsPerSecond": 1}}
    both = {"sources": {"a": kafka, "b": rate}, "sql": "SELECT 1 FROM a JOIN b", "sink": {"format": "noop"}}
    made = with_patience(parse_definition(json.dumps(both).encode()))
    assert made.sources["b"].options == {"rowsPerSecond": 1}
    assert "fetchOffset.numRetries" in made.sources["a"].options


class Clusters:
    """The second one cannot be watched."""

    trouble = None

    def __init__(self) -> None:
        self.open: list[Clusters] = []
        self.closings = 0

    def watch(self, _options: Any) -> Clusters:
        if self.open:
            raise RuntimeError("can't start new thread")
        self.open.append(self)
        return self

    def close(self) -> None:
        self.closings += 1


def test_of_clusters_that_cannot_all_be_watched_none_is() -> None:
    """Whoever asked for that is told of none, and could end none."""
    kafka = {"format": "kafka", "options": {"subscribe": "t"}}
    two = {"sources": {"a": kafka, "b": kafka}, "sql": "SELECT 1 FROM a JOIN b", "sink": {"format": "noop"}}
    clusters: Any = Clusters()
    with pytest.raises(RuntimeError):
        watch_sources(clusters, parse_definition(json.dumps(two).encode()))
    assert clusters.closings == 1
