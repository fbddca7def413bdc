"""The bad rows of the chaos run, and the comparison that finds each of them."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.acceptance.chaos.bad_rows import Bad, JsonRows, Kind, read_aside
from tests.acceptance.chaos.balance import Balance, Thing, of_places
from tests.acceptance.chaos.flows import FLIGHTS, Flow

ROWS = 10_000
DUE: dict[str, Counter[Thing]] = {
    "": Counter([(1, "UA"), (2, "AA")]),
    "aside": Counter([(3, "?")]),
    "dropped": Counter([(4, "!")]),
}


def fed() -> Flow:
    """A flow with its bad rows."""
    flow, rows = Flow(FLIGHTS, "EWR", "sqlite", "append"), JsonRows(1)
    for number in range(ROWS):
        rows.line(flow, number, "UA", "NA" if number % 7 else "1.5")
    return flow


def test_bad_rows_are_as_many_as_they_are_to_be() -> None:
    """One in a hundred, one in a thousand; which of them is the seed's."""
    kinds = Counter(bad.kind for bad in fed().bad.values())
    assert kinds[Kind.REFUSED] == 10
    assert 45 <= kinds[Kind.DROPPED] <= 50
    assert 90 <= kinds[Kind.VIOLATING] <= 100
    assert 90 <= kinds[Kind.MALFORMED] <= 100
    assert fed().bad == fed().bad


def test_a_malformed_row_is_none_of_json_s_and_like_no_other() -> None:
    """Nor of the schema."""
    lines = [bad.line for bad in fed().bad.values() if bad.kind is Kind.MALFORMED]
    assert len(set(lines)) == len(lines)
    assert not any(isinstance(_number(line), int) or b"\n" in line for line in lines)


def test_what_is_wrong_with_a_malformed_row_can_be_mended() -> None:
    """By options in every second one, else by hand; the others need neither."""
    bad = fed().bad.values()
    assert all(json.loads(each.whole)["id"] == each.number for each in bad)
    malformed = [each for each in bad if each.kind is Kind.MALFORMED]
    loose = [each.line for each in malformed if not each.needs_a_hand]
    assert loose
    assert all(re.match(rb"{id: \d+, carrier: ", line) for line in loose)
    assert len(loose) < len(malformed)
    assert not any(each.needs_a_hand for each in bad if each.kind is not Kind.MALFORMED)


def test_of_a_flow_that_is_mended_all_is_due_but_what_is_dropped() -> None:
    """With the keys that the bad rows have."""
    flow = fed()
    number = len(flow.bad)
    flow.fed = ["UA"] * ROWS
    assert len(flow.due) == ROWS - number
    flow.mended = True
    dropped = [bad for bad in flow.bad.values() if bad.kind is Kind.DROPPED]
    assert len(flow.due) == ROWS - len(dropped)
    assert flow.due_aside == []
    assert Counter(key for _, key in flow.due)["?"] == sum(
        bad.kind is Kind.VIOLATING for bad in flow.bad.values()
    )


def test_a_row_that_was_put_aside_is_known_by_its_number() -> None:
    """Malformed ones by their bytes, others by what their JSON says."""
    flow = fed()
    for bad in flow.bad.values():
        if bad.kind is Kind.DROPPED:
            assert bad.aside is None
        elif bad.kind is Kind.MALFORMED:
            assert read_aside(flow, "unreadable", "source.value", "kafka", bad.line) == bad.aside
        else:
            why = ("refused", "sink") if bad.kind is Kind.REFUSED else ("violation", "known")
            assert read_aside(flow, *why, "row", _result(bad)) == bad.aside
    assert read_aside(flow, "unreadable", "source", "line", b"\xef\xbf\xbd").number == -1


@pytest.mark.parametrize(
    ("sink", "aside", "told"),
    [
        ([(1, "UA"), (2, "AA")], [(3, "?")], (Balance(), Balance())),
        ([(1, "UA")], [(3, "?")], (Balance(lost=1), Balance())),
        ([(1, "UA"), (2, "AA")], [], (Balance(), Balance(lost=1))),
        ([(1, "UA"), (2, "AA"), (2, "AA")], [(3, "?")], (Balance(twice=1), Balance())),
        ([(1, "UA"), (2, "AA")], [(3, "?"), (3, "?")], (Balance(), Balance(twice=1))),
        ([(1, "UA"), (2, "BB")], [(3, "?")], (Balance(lost=1, twice=1), Balance())),
        ([(1, "UA")], [(3, "?"), (2, "AA")], (Balance(), Balance(misplaced=1))),
        ([(1, "UA"), (2, "AA"), (3, "?")], [], (Balance(misplaced=1), Balance())),
        ([(1, "UA"), (2, "AA"), (3, "?")], [(3, "?")], (Balance(misplaced=1), Balance())),
        ([(1, "UA"), (2, "AA"), (4, "!")], [(3, "?")], (Balance(misplaced=1), Balance())),
        ([(1, "UA"), (2, "AA")], [(3, "?"), (-1, "x")], (Balance(), Balance(twice=1))),
    ],
)
def test_each_row_is_to_be_in_its_place_once(
    sink: list[tuple[int, str]], aside: list[tuple[int, str]], told: tuple[Balance, Balance]
) -> None:
    """One that is missing, there again, another one, or elsewhere is told where it is."""
    found: dict[str, Counter[Thing]] = {"": Counter(sink), "aside": Counter(aside), "dropped": DUE["dropped"]}
    balances = of_places(DUE, found)
    assert (balances[""], balances["aside"]) == told


def _number(line: bytes) -> object:
    try:
        return json.loads(line)["id"]
    except ValueError:
        return None


def _result(bad: Bad) -> bytes:
    """As Spark writes a row of the result: another order of things, and what is NULL is left out."""
    value = {} if bad.value is None else {"value": bad.value}
    return json.dumps({**value, "key": bad.kind.value, "id": bad.number}, separators=(",", ":")).encode()
