"""What a source asks for and its topics do not have; what Spark does with each was seen with 4.1.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from worker.lag.measure import PartitionState
from worker.lag.missing import Missing, Read, missing, wanted_besides

TOPICS = {"orders": {0: PartitionState(9, 20), 1: PartitionState(0, 5)}}
BY_NAME = {"subscribe": "orders"}


@pytest.mark.parametrize(
    "options",
    [{"subscribe": "orders, payments"}, {"Subscribe": "payments"}, {"assign": '{"payments": [0]}'}],
)
def test_a_topic_that_is_not_there_is_named(options: dict[str, Any]) -> None:
    """It may be made any moment, so that is for nobody to decide for good."""
    told = missing(options, [], TOPICS)
    assert told is not None
    assert told.found.startswith("topic payments is not there, or the source's user may not see it")
    assert (told.option, told.permanent) == (next(iter(options)), False)


def test_an_assigned_partition_that_is_not_there_is_named() -> None:
    """Spark leaves it out without a word. It may be made any moment, as a topic may."""
    told = missing({"assign": '{"orders": [0, 7]}'}, [], TOPICS)
    assert told is not None
    found = "topic orders has no partition 7; give it more partitions, or correct the option"
    assert told == ("assign", found, False)


def test_what_retention_has_eaten_is_told_with_both_offsets_and_the_choices() -> None:
    """Topic, partition, the offset that the checkpoint wants, the earliest there is."""
    told = missing(BY_NAME, [Read({"orders": {0: 4, 1: 5}})], TOPICS)
    assert told is not None
    place = "[KAFKA_DATA_LOSS] topic orders, partition 0"
    assert told.found.startswith(f"{place}: wants offset 4, the earliest there is 9 (5 rows are gone): ")
    for choice in ("`failOnDataLoss: false`", "`sparkherd tasks reset`", "`sparkherd tasks restart`"):
        assert choice in told.found
    assert told.permanent


@pytest.mark.parametrize("value", [False, "false", "FALSE"])
def test_a_loss_that_was_accepted_is_none(value: Any) -> None:
    """Spark goes on with the first row there is."""
    assert missing({**BY_NAME, "failOnDataLoss": value}, [Read({"orders": {0: 4, 1: 5}})], TOPICS) is None


def test_a_topic_that_was_made_anew_and_is_shorter_is_a_loss_that_can_be_accepted() -> None:
    """Spark goes on at its end then."""
    told = missing(BY_NAME, [Read({"orders": {0: 21}})], TOPICS)
    assert told is not None
    said = "partition 0: wants offset 21, and the next row will get 20: the topic was made anew"
    assert said in told.found
    assert "failOnDataLoss" in told.found
    assert missing({**BY_NAME, "failOnDataLoss": False}, [Read({"orders": {0: 21}})], TOPICS) is None


@pytest.mark.parametrize("planned", [{}, {"gone": {0: 3}}])
def test_a_topic_that_was_deleted_is_a_loss_that_can_be_accepted(planned: Any) -> None:
    """It may come back, so another try is worth it; Spark leaves it out once that was accepted."""
    pattern = {"subscribePattern": ".*"}
    reads = [Read({"orders": {0: 9, 1: 0}, "gone": {0: 3}}, planned)]
    told = missing(pattern, reads, TOPICS)
    assert told is not None
    place = "[KAFKA_DATA_LOSS] topic gone, partition 0"
    assert told.found.startswith(
        f"{place}: wants offset 3, and the source has no such partition: accept that"
    )
    assert not told.permanent
    assert missing({**pattern, "failOnDataLoss": False}, reads, TOPICS) is None


def test_a_batch_that_wants_rows_of_a_deleted_topic_cannot_be_done() -> None:
    """Whatever was accepted: Spark does it again as it was planned, and waits for them."""
    read = Read({"gone": {0: 3}}, {"gone": {0: 5}})
    told = missing({"subscribePattern": ".*", "failOnDataLoss": False}, [read], TOPICS)
    assert told is not None
    assert "the batch that was begun is to go from offset 3 to 5, and the source has no such" in told.found
    assert not told.permanent


def test_a_batch_that_has_found_a_topic_that_is_gone_by_now_can_be_done_without_it() -> None:
    """Nothing says where it was to begin there: Spark asks for that, and leaves out what is not there."""
    read = Read({"orders": {0: 9, 1: 0}}, {"orders": {0: 9, 1: 0}, "gone": {0: 5}})
    pattern = {"subscribePattern": ".*"}
    assert missing({**pattern, "failOnDataLoss": False}, [read], TOPICS) is None
    told = missing(pattern, [read], TOPICS)
    assert told is not None
    assert "topic gone, partition 0: wants its rows, and the source has no such partition" in told.found


def test_a_checkpoint_may_be_at_either_end_of_what_there_is() -> None:
    """The end is where the next row will be, and a batch that was begun may end there."""
    for offset in (9, 20):
        assert missing(BY_NAME, [Read({"orders": {0: offset}}, {"orders": {0: 20}})], TOPICS) is None
    assert missing(BY_NAME, [Read({"orders": {0: 21}})], TOPICS) is not None


def test_each_time_that_a_source_is_read_is_judged() -> None:
    """One of them may be behind the other."""
    fine, late = Read({"orders": {0: 9, 1: 0}}), Read({"orders": {0: 4, 1: 0}})
    assert missing(BY_NAME, [fine, fine], TOPICS) is None
    assert missing(BY_NAME, [fine, late], TOPICS) is not None


def test_a_first_batch_that_was_begun_is_judged_by_its_plan() -> None:
    """Where it begins is what the source has kept, or nothing is known of; its options do not count."""
    options = {**BY_NAME, "startingOffsets": '{"orders": {"0": 9}}'}
    topics = {"orders": {0: PartitionState(0, 3, topic_id="new", cluster_id="c")}}
    told = missing(options, [Read(planned={"orders": {0: 4}})], topics)
    assert told is not None
    assert "the batch that was begun is to go from offset 0 to 4, and the next row will get 3" in told.found
    told = missing(options, [Read(planned={"orders": {0: 2}}, ids={"c": {"orders": ["old"]}})], topics)
    assert told is not None
    assert "topic orders was made anew" in told.found
    assert (
        missing(options, [Read(planned={"orders": {0: 2}}, ids={"c": {"orders": ["new"]}})], topics) is None
    )
    assert missing(options, [Read()], topics) is None


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        (
            '{"orders": {"0": 1000, "1": 0}}',
            "orders, partition 0: wants offset 1000, and the next row will get 20",
        ),
        ('{"orders": {"0": 3, "1": 0}}', "orders, partition 0: wants offset 3, the earliest there is 9"),
        ('{"orders": {"0": 9}}', "says nothing of topic orders, partition 1"),
        ('{"orders": {"0": 9, "1": 0, "2": 0}}', "topic orders has no partition 2"),
    ],
)
def test_offsets_to_begin_at_have_to_be_there(offsets: str, said: str) -> None:
    """Of each partition, and within what there is."""
    options = {**BY_NAME, "startingOffsets": offsets}
    told = missing(options, [], TOPICS)
    assert told is not None
    assert (told.option, told.permanent) == ("startingOffsets", "has no partition" not in said)
    assert said in told.found
    if "wants offset" in said:
        assert missing({**options, "failOnDataLoss": False}, [], TOPICS) is None
    by_time = '{"orders": {"0": 1, "1": 1000}}'
    for preferred in ({"startingTimestamp": "1"}, {"startingOffsetsByTimestamp": by_time}):
        assert missing({**options, **preferred}, [], TOPICS) is None
    assert missing(options, [Read({"orders": {0: 9, 1: 0}})], TOPICS) is None


@pytest.mark.parametrize(
    "offsets",
    [
        *("earliest", "latest", '{"orders": {"0": -1, "1": -2}}', '{"orders": {"0": 20, "1": 5}}'),
        '{"orders": {"0": -2, "1": 0}}',
    ],
)
def test_offsets_that_are_there(offsets: str) -> None:
    """The end itself is one: it is where the next row will be."""
    assert missing({**BY_NAME, "startingOffsets": offsets}, [], TOPICS) is None


def test_a_pattern_may_match_nothing_yet() -> None:
    """Spark reads topics that come later."""
    assert missing({"subscribePattern": "pay.*"}, [], {}) is None


def test_a_topic_that_was_made_anew_is_known_by_its_id() -> None:
    """It may have more rows by now than were read of the old one, and looks like it then."""
    topics = {"orders": {0: PartitionState(0, 20, topic_id="new", cluster_id="c")}}
    told = missing(BY_NAME, [Read({"orders": {0: 4}}, ids={"c": {"orders": ["old"], "gone": ["x"]}})], topics)
    assert told is not None
    assert told.found.startswith("[KAFKA_DATA_LOSS] topic orders was made anew (its id was old, and is new)")
    assert "`failOnDataLoss: false`" in told.found
    accepted = {**BY_NAME, "failOnDataLoss": False}
    assert missing(accepted, [Read({"orders": {0: 4}}, ids={"c": {"orders": ["old"]}})], topics) is None
    assert missing(BY_NAME, [Read({"orders": {0: 4}}, ids={"c": {"orders": ["new"]}})], topics) is None


def test_a_topic_of_another_cluster_is_a_copy_and_not_made_anew() -> None:
    """A task that was moved goes on with the offsets of its mirror, where each topic has another id."""
    topics = {"orders": {0: PartitionState(0, 20, topic_id="new", cluster_id="elsewhere")}}
    read = Read({"orders": {0: 4}}, ids={"c": {"orders": ["old"]}})
    assert missing(BY_NAME, [read], topics) is None
    back = {"orders": {0: PartitionState(0, 20, topic_id="new", cluster_id="c")}}
    assert missing(BY_NAME, [read], back) is not None
    same = Read({"orders": {0: 4}}, ids={"c": {"orders": ["new", "old"]}})
    assert missing(BY_NAME, [same], back) is None
    unnamed = {"orders": {0: PartitionState(0, 20, topic_id="new")}}
    assert missing(BY_NAME, [read], unnamed) is None


def test_brokers_that_give_out_no_ids_are_believed() -> None:
    """There is nothing to tell a topic from another by."""
    assert missing(BY_NAME, [Read({"orders": {0: 9, 1: 0}}, ids={"c": {"orders": ["old"]}})], TOPICS) is None
    without_id = {"orders": {0: PartitionState(0, 20, cluster_id="c")}}
    assert missing(BY_NAME, [Read({"orders": {0: 9}}, ids={"c": {"orders": ["old"]}})], without_id) is None


@pytest.mark.parametrize(("ends", "is_fit"), [(9, True), (15, True), (20, True), (3, False), (21, False)])
def test_a_batch_that_was_planned_while_its_topic_was_replaced_cannot_be_done(
    *, ends: int, is_fit: bool
) -> None:
    """Spark does it again as it was planned, and fails each time, unless the loss was accepted."""
    read = Read({"orders": {0: 9, 1: 0}}, {"orders": {0: ends, 1: 5}})
    assert missing({**BY_NAME, "failOnDataLoss": False}, [read], TOPICS) is None
    told = missing(BY_NAME, [read], TOPICS)
    assert (told is None) is is_fit
    if told is not None:
        assert f"the batch that was begun is to go from offset 9 to {ends}" in told.found


def test_offset_0_is_an_offset_as_any_other() -> None:
    """Where retention has eaten it, it is not there; only -1 and -2 are none."""
    told = missing({**BY_NAME, "startingOffsets": '{"orders": {"0": 0, "1": 0}}'}, [], TOPICS)
    assert told is not None
    assert "topic orders, partition 0: wants offset 0, the earliest there is 9" in told.found


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"assign": '{"orders": [-1]}'},
            Missing("assign", 'expected JSON as text, as {"TOPIC": [PARTITION, PARTITION]}'),
        ),
        (
            {"Assign": "orders"},
            Missing("Assign", 'expected JSON as text, as {"TOPIC": [PARTITION, PARTITION]}'),
        ),
        (
            {**BY_NAME, "startingOffsets": "soon"},
            Missing(
                "startingOffsets",
                'expected earliest, latest, or JSON as text, as {"TOPIC": {"PARTITION": NUMBER}}',
            ),
        ),
    ],
)
@pytest.mark.parametrize("reads", [[], [Read({"orders": {0: 9, 1: 0}})]])
def test_an_option_that_cannot_be_read_is_told_as_such(
    options: dict[str, Any], told: Missing, reads: list[Read]
) -> None:
    """Also after the first run, and not as a loss of what it does not name: its secrets are known by now."""
    assert missing(options, reads, TOPICS) == told


def test_partitions_that_are_assigned_to_nobody_are_no_fault() -> None:
    """Spark reads nothing then."""
    for nothing in ("{}", '{"orders": []}', '{"payments": []}'):
        assert missing({"assign": nothing}, [], {"orders": {}}) is None


def test_an_assigned_partition_is_missed_where_its_topic_has_none_that_is_assigned() -> None:
    """The topic is there all the same."""
    told = missing({"assign": '{"orders": [7]}'}, [], {"orders": {}})
    assert told is not None
    assert told.found.startswith("topic orders has no partition 7")


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"assign": '{"orders": [0]}'}, "orders, partition 1"),
        ({"subscribe": "orders"}, "payments, partition 1"),
    ],
)
def test_offsets_of_what_the_source_does_not_read_are_to_be_left_out(
    options: dict[str, Any], place: str
) -> None:
    """It may well be there, and Spark wants no offsets of it."""
    topic = place.partition(",")[0]
    states = {0: PartitionState(9, 20)} if "assign" in options else TOPICS["orders"]
    begin = {"orders": dict.fromkeys(states, -1)}
    begin.setdefault(topic, {})[1] = -1
    told = missing({**options, "startingOffsets": json.dumps(begin)}, [], {"orders": states})
    found = f"names topic {place}, which the source does not read; leave it out"
    assert told == Missing("startingOffsets", found)


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ('{"orders": {"0": 9}}', "says nothing of topic orders, partition 1; it has to name all partitions"),
        (
            '{"orders": {"0": 1, "1": 2}, "pay": {"0": 3}}',
            "names topic pay, partition 0, which the source does not read; leave it out",
        ),
    ],
)
def test_times_to_begin_at_are_wanted_of_all_partitions_too(times: str, found: str) -> None:
    """Spark wants them of those that it reads, and of no others; it is told as it is written."""
    options = {"SUBSCRIBE": "orders", "STARTINGOFFSETSByTimestamp": times}
    assert missing(options, [], TOPICS) == Missing("STARTINGOFFSETSByTimestamp", found)
    assert missing(options, [Read({"orders": {0: 9, 1: 0}})], TOPICS) is None
    assert missing({**options, "startingTimestamp": 5}, [], TOPICS) is None


def test_where_to_begin_is_told_by_the_option_as_it_is_written() -> None:
    """Whoever looks for it in the definition finds it."""
    told = missing({**BY_NAME, "STARTINGOFFSETS": '{"orders": {"0": 9}}'}, [], TOPICS)
    assert told is not None
    assert told.option == "STARTINGOFFSETS"


def test_offsets_of_a_topic_that_a_pattern_may_yet_match() -> None:
    """It may come, or be mistyped."""
    options = {"subscribePattern": ".*", "startingOffsets": '{"orders": {"0": -1, "1": -1}, "pay": {"0": 1}}'}
    told = missing(options, [], TOPICS)
    assert told is not None
    assert told.found.startswith(
        "topic pay is not there, or the pattern does not find it, or the source's user"
    )
    assert not told.permanent


def test_offsets_have_to_name_every_partition() -> None:
    """Of a pattern, too."""
    told = missing({"subscribePattern": ".*", "startingOffsets": "{}"}, [], TOPICS)
    assert told is not None
    assert told.found.startswith("says nothing of topic orders, partition 0")
    assert missing({"subscribePattern": ".*", "startingOffsets": "{}"}, [], {}) is None


@pytest.mark.parametrize(
    ("options", "topics"),
    [
        ({"assign": '{"orders": [1]}'}, {"orders": {1: PartitionState(0, 5)}}),
        ({"subscribe": "payments"}, {"payments": {0: PartitionState(0, 5)}}),
    ],
)
def test_what_the_options_name_no_more_is_no_loss_to_accept(options: dict[str, Any], topics: Any) -> None:
    """Its rows are there: the option is to be looked at first."""
    told = missing(options, [Read({"orders": {0: 9}})], topics)
    assert told is not None
    assert told.option == next(iter(options))
    said = "does not name topic orders, partition 0, which the checkpoint goes on with: name it again"
    assert told.found.startswith(said)
    assert "KAFKA_DATA_LOSS" not in told.found
    for planned in ({}, {"orders": {0: 9}}, {"orders": {0: 12}}):
        begun = Read({"orders": {0: 9}}, planned)
        assert missing(options, [begun], topics) == told
        there = {**topics, "orders": {0: PartitionState(0, 12), **topics.get("orders", {})}}
        assert missing({**options, "failOnDataLoss": False}, [begun], there) is None


@pytest.mark.parametrize("options", [{"assign": '{"orders": [1]}'}, {"subscribe": "payments"}])
def test_what_a_begun_batch_wants_has_to_be_there_named_or_not(options: dict[str, Any]) -> None:
    """Spark does that batch as it was planned; for a partition that is gone it would wait for ever."""
    accepted = {**options, "failOnDataLoss": False}
    topics = {"orders": {1: PartitionState(0, 5)}, "payments": {0: PartitionState(0, 5)}}
    begun = Read({"orders": {0: 9, 1: 3}}, {"orders": {0: 12, 1: 3}})
    assert wanted_besides(options, [begun]) == {"orders": [0]}
    told = missing(accepted, [begun], topics)
    assert told is not None
    assert "the batch that was begun is to go from offset 9 to 12" in told.found
    assert not told.permanent
    done = Read({"orders": {0: 12, 1: 3}}, {"orders": {0: 12, 1: 3}})
    assert wanted_besides(options, [done]) == {}
    assert missing(accepted, [done], topics) is None
