from __future__ import annotations

from typing import Any

import msgspec
import pytest

from definition.document import MOST_BYTES
from definition.resets import BEGINNINGS, begin_with, faults, meaning, offsets_of, read_ends, read_offsets
from protocol.messages.tasks import EARLIEST, Problem

TABLE = {"url": "sqlite:///o.db", "table": "delays"}
SQL = {"format": "sql", "options": TABLE}
UPSERT = {"format": "sql", "options": {**TABLE, "mode": "upsert", "key": ["a", "b"]}}


def ends(source: str | None = "json", sink: dict[str, Any] | None = SQL, **options: Any) -> Any:
    """The ends of such a task; without a source it has an entry point."""
    begin = {"source": {"format": source, "options": options}} if source else {"entrypoint": "a:b"}
    return read_ends(msgspec.json.encode({**begin, "sink": sink, "sql": "SELECT 1", "weight": 2.0}))


def wrong(source: str | None, **offsets: Any) -> dict[str, str]:
    """Place to fault."""
    return {fault.path: fault.message for fault in faults(ends(source), offsets)}


@pytest.mark.parametrize(
    ("source", "offsets"),
    [
        ("kafka", {"startingOffsets": "earliest"}),
        ("KAFKA", {"STARTINGOFFSETS": "latest"}),
        ("kafka", {"startingOffsets": '{"flights": {"0": 23, "1": -2}}'}),
        ("kafka", {"startingOffsetsByTimestamp": '{"flights": {"0": 1700000000000}}'}),
        ("kafka", {"startingTimestamp": "1700000000000"}),
        ("kafka", {"startingTimestamp": 1700000000000}),
        ("rate-micro-batch", {"startTimestamp": 5}),
        ("json", {}),
        ("delta", {"startingVersion": 3, "anything": True}),
        (None, {"from": "2013-06-01", "again": True}),
    ],
)
def test_offsets_that_a_source_understands(source: str | None, offsets: dict[str, Any]) -> None:
    """Spark's own options, in any case; sources that are not Spark's and entry points may be given any."""
    assert wrong(source, **offsets) == {}


@pytest.mark.parametrize(
    ("source", "name", "value"),
    [
        ("kafka", "startingOffsets", "soon"),
        ("kafka", "startingOffsets", 5),
        ("kafka", "startingOffsets", True),
        ("kafka", "startingOffsets", '{"flights": 3}'),
        ("kafka", "startingOffsets", '{"flights": {"0": "x"}}'),
        ("kafka", "startingOffsets", "[" * 100_000),
        ("kafka", "startingOffsetsByTimestamp", "latest"),
        ("kafka", "startingOffsetsByTimestamp", ""),
        ("kafka", "startingTimestamp", "yesterday"),
        ("kafka", "startingTimestamp", -1),
        ("kafka", "startingTimestamp", 1.5),
        ("kafka", "startingTimestamp", True),
        ("kafka", "startingTimestamp", "٣"),
        ("kafka", "maxOffsetsPerTrigger", 5),
        *(("rate-micro-batch", "startTimestamp", value) for value in ("", " 5 ", "5\n", -1, "9" * 19)),
        ("kafka", "startingTimestamp", "\u00a05"),
        ("kafka", "startingOffsets", "\u00a0earliest"),
        ("kafka", "startingOffsets", '{"t": {"0": 18446744073709551619}}'),
        ("kafka", "startingOffsetsByTimestamp", '{"t": {"0": -7}}'),
        ("json", "modifiedAfter", "2013-06-01"),
        ("rate", "rowsPerSecond", 5),
    ],
)
def test_offsets_that_a_source_would_ignore_or_choke_on(source: str, name: str, value: Any) -> None:
    """Each is refused in one line under its own name."""
    found = wrong(source, **{name: value})
    assert list(found) == [f"offsets.{name}"]
    assert "\n" not in found[f"offsets.{name}"]


@pytest.mark.parametrize("name", ["startingOffsets", "STARTINGOFFSETSBYTIMESTAMP"])
@pytest.mark.parametrize("value", ["{}", '{"t": {}}'])
@pytest.mark.parametrize("read", [{"Subscribe": "t"}, {"assign": '{"t": [0]}'}])
def test_a_reset_is_judged_as_the_definition_that_it_makes(
    name: str, value: str, read: dict[str, Any]
) -> None:
    """To name no partition is right only where none may be read."""
    [fault] = faults(ends("kafka", **read), {name: value})
    assert fault == Problem(f"offsets.{name}", "names no partition; it has to name all that are read")
    assert list(faults(ends("kafka", subscribePattern=".*"), {name: value})) == []
    assert list(faults(ends("kafka", assign="{}"), {name: value})) == []


def test_one_place_to_begin_is_enough() -> None:
    """Of two, Kafka's source would silently obey one."""
    found = wrong("kafka", startingOffsets="earliest", startingTimestamp=5)
    assert found == {"offsets": "names more than one place to begin"}


def test_offsets_are_earliest_or_options() -> None:
    """Every fault at once, each with its place."""
    assert read_offsets(b'"earliest"') == ("earliest", ())
    assert read_offsets(b'{"a": 1, "b": true, "c": "x", "d": 1.5}')[1] == ()
    for raw in (b'"latest"', b"null", b"3", b'["earliest"]', b"true", b"1e999", b'"\xff"', b"[" * 5000):
        [problem] = read_offsets(raw)[1]
        assert problem.path == "offsets"
    assert [p.path for p in read_offsets(b'{"a": null, "b c": {}}')[1]] == ["offsets.a", 'offsets["b c"]']


def test_offsets_have_a_size_beyond_which_they_are_not_read() -> None:
    """That of a definition, whose options they stand for."""
    assert read_offsets(b"?" * (MOST_BYTES + 1)) == (
        "earliest",
        (Problem("offsets", f"is larger than {MOST_BYTES} bytes"),),
    )
    assert read_offsets(b'{"a": 1}' + b" " * (MOST_BYTES - 8))[1] == ()


def test_earliest_overrules_what_the_definition_says() -> None:
    """Else a Kafka source begins at its latest offsets, or wherever an option says that it obeys before."""
    options: dict[str, Any] = {
        "subscribe": "flights",
        "startingTimestamp": 7,
        "STARTINGOFFSETSBYTIMESTAMP": "{}",
    }
    assert begin_with("Kafka", options, EARLIEST) == {"subscribe": "flights", "startingOffsets": "earliest"}
    assert begin_with("kafka", {}, EARLIEST) == {"startingOffsets": "earliest"}


def test_given_offsets_overrule_what_the_definition_says() -> None:
    """In any spelling; the other options stay."""
    options: dict[str, Any] = {"subscribe": "flights", "startingTimestamp": 7, "startingoffsets": "latest"}
    begun = begin_with("kafka", options, {"startingOffsets": "earliest"})
    assert begun == {"subscribe": "flights", "startingOffsets": "earliest"}
    assert begin_with("delta", {"StartingVersion": 1, "x": 2}, {"startingVersion": 3}) == {
        "x": 2,
        "startingVersion": 3,
    }


@pytest.mark.parametrize("source", [*sorted(BEGINNINGS.keys() - {"kafka"}), "delta"])
def test_elsewhere_earliest_is_where_a_new_query_begins(source: str) -> None:
    """The definition's options stay as they are."""
    options: dict[str, Any] = {"path": "in", "startTimestamp": 1000, "startingVersion": 3}
    assert begin_with(source, options, EARLIEST) == options


@pytest.mark.parametrize("source", ["kafka", "delta"])
def test_no_options_leave_it_to_the_definition(source: str) -> None:
    """As a new task of this definition would begin."""
    options: dict[str, Any] = {"startingOffsets": "latest", "startingVersion": 3}
    assert begin_with(source, options, {}) == options


@pytest.mark.parametrize(
    ("task", "offsets", "told"),
    [
        (ends(), EARLIEST, "Everything that the source still has is read again."),
        (
            ends("delta"),
            EARLIEST,
            "Reading begins anew where the source delta and its options let a new query",
        ),
        (ends("kafka"), {}, "Reading begins anew where the source kafka and its options let"),
        (
            ends("kafka"),
            {"startingTimestamp": 5},
            "Reading begins anew at startingTimestamp=5; what is before",
        ),
        (ends(None), EARLIEST, "The entry point begins anew, wherever it lets"),
        (ends(None), {"day": 5}, "The entry point is given day=5 over its options"),
        (
            ends(),
            EARLIEST,
            "The rows in the table delays stay, and rows that are read again are written again",
        ),
        (ends(sink=UPSERT), EARLIEST, "rows that are read again replace them by key (a, b)."),
        (ends(sink={"format": "fenced_files", "options": {"path": "/o"}}), EARLIEST, "The files in /o stay"),
        (ends(sink={"format": "Parquet"}), EARLIEST, "_spark_metadata included"),
        (ends(sink={"format": "kafka"}), EARLIEST, "The sink kafka has no fence"),
        (ends(None, None), EARLIEST, "What the entry point has written stays"),
        (ends(), EARLIEST, "State begins empty"),
    ],
)
def test_what_a_reset_means(task: Any, offsets: Any, told: str) -> None:
    """For each kind of source and of sink; never a URL, which may hold a password."""
    meant = meaning(task, offsets)
    assert told in meant
    assert "sqlite:" not in meant


def several(**sources: dict[str, Any]) -> Any:
    """The ends of a task with these sources."""
    return read_ends(msgspec.json.encode({"sources": sources, "sink": SQL, "sql": "SELECT 1"}))


JOINED = several(
    orders={"format": "kafka"},
    rates={"format": "rate-micro-batch"},
    customers={"format": "csv", "static": True},
)


def test_of_several_sources_each_option_has_a_name_before_it() -> None:
    """A source that is not named begins as its definition says."""
    offsets: Any = {"orders.startingOffsets": "earliest", "rates.startTimestamp": 5}
    assert list(faults(JOINED, offsets)) == []
    assert offsets_of("orders", offsets) == {"startingOffsets": "earliest"}
    assert offsets_of("customers", offsets) == {}
    assert offsets_of("", {"a.b": 1}) == {"a.b": 1}
    assert offsets_of("orders", EARLIEST) == EARLIEST


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("startingOffsets", "offsets.startingOffsets"),
        ("customers.startingOffsets", 'offsets["customers.startingOffsets"]'),
        ("order.startingOffsets", 'offsets["order.startingOffsets"]'),
        ("orders.path", "offsets.orders.path"),
        ("rates.startTimestamp", "offsets.rates.startTimestamp"),
    ],
)
def test_what_no_source_of_several_understands(name: str, place: str) -> None:
    """A name that is none, one that stands still, an option that is another's, a value that is none."""
    [fault] = faults(JOINED, {name: "x"})
    assert fault.path == place


def test_one_place_to_begin_for_each_of_several() -> None:
    """Two of one source contradict each other, one of each of two do not."""
    both: Any = {"orders.startingOffsets": "earliest", "orders.startingTimestamp": 5}
    assert [(each.path, each.message) for each in faults(JOINED, both)] == [
        ("offsets", "names more than one place to begin for orders")
    ]


def test_what_a_reset_of_several_sources_means() -> None:
    """If all of them are read from the beginning that is said; else which are not."""
    assert "Everything that the source still has" in meaning(JOINED, EARLIEST)
    unsure = several(orders={"format": "kafka"}, late={"table": "ice.db.late"})
    assert "where the source table ice.db.late and its options" in meaning(unsure, EARLIEST)
