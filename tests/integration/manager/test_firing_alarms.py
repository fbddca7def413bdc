"""What fires in any group, on each database: in pages along an index, of what may be known only."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert

from manager.storage.firing_alarms import (
    ALARMS,
    MOST_APART,
    FiringQuery,
    Place,
    _page,
    place_of,
    read_page,
)
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import COUNTED_AT_MOST
from protocol.roles import Role
from tests.integration.manager.secured import Tokens, serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import aiohttp
    from sqlalchemy import Connection

    from manager.core.stored_rows import AlarmRow
    from manager.storage.sql_storage import SqlStorage
    from tests.integration.manager.backends import Database

WORST_FIRST = ("critical", "warning", "info")
GROUPS = ("flights", "flights2", "Trains", "a_b", "aXb")
AFTER = Place(Severity.WARNING, 2, "flights", "lag", "task:t1")


ORDINARY: dict[str, Any] = {
    "kind": "failed",
    "since_ms": 1,
    "told_at_ms": 0,
    "resolved_at_ms": 0,
    "acknowledged_at_ms": 0,
    "receivers": ("ops",),
}


def rows() -> list[dict[str, Any]]:
    """Many that began at the same time, and as many that are over."""
    chance = random.Random(1)
    keys = [*product(GROUPS, ("lag", "failed"), (f"task:t{number}" for number in range(7)), range(1, 7))]
    chance.shuffle(keys)
    names = ("group", "rule", "subject", "fired_at_ms")
    return [
        ORDINARY
        | dict(zip(names, key, strict=True))
        | {"severity": chance.choice(WORST_FIRST), "resolved_at_ms": 7 if key[-1] > 3 else 0}
        for key in keys
    ]


def stored(database: Database, alarms: Sequence[dict[str, Any]]) -> None:
    with database.transaction() as connection:
        connection.execute(insert(ALARMS), list(alarms))


def walked(connection: Connection, asked: FiringQuery) -> list[AlarmRow]:
    """All pages, as somebody asks for them who only has what is written in `next`."""
    found: list[AlarmRow] = []
    while True:
        page = read_page(connection, asked)
        assert len(page.rows) == asked.limit or page.following is None
        found += page.rows
        if page.following is None:
            return found
        asked = asked._replace(after=place_of(page.following.written()))


def names(alarms: Sequence[AlarmRow]) -> list[tuple[str, str, str, int]]:
    return [(each.group, each.rule, each.subject, each.fired_at_ms) for each in alarms]


ASKED = [
    FiringQuery(7),
    FiringQuery(7, group="flights"),
    FiringQuery(7, rule="lag"),
    FiringQuery(7, group="flights", rule="lag"),
    FiringQuery(7, severity=Severity.INFO),
    FiringQuery(7, may_know=("flights",)),
    FiringQuery(7, may_know=("flights", "Trains")),
    FiringQuery(7, may_know=("flights*", "Trains")),
    FiringQuery(7, may_know=("a_*",)),
    FiringQuery(7, may_know=("flights",), group="Trains"),
    FiringQuery(7, may_know=("fl*",), group="flights2", rule="failed", severity=Severity.WARNING),
    FiringQuery(7, may_know=("flights", *(f"g{number}" for number in range(MOST_APART)))),
]


def fits(asked: FiringQuery, alarm: dict[str, Any]) -> bool:
    """As tokens and filters are written down, without a database."""
    known = not asked.may_know or any(
        alarm["group"].startswith(each[:-1]) if each.endswith("*") else alarm["group"] == each
        for each in asked.may_know
    )
    wanted = {"group": asked.group, "rule": asked.rule, "severity": asked.severity}
    return (
        known
        and not alarm["resolved_at_ms"]
        and all(value in {None, alarm[name]} for name, value in wanted.items())
    )


@pytest.mark.parametrize("asked", ASKED, ids=str)
async def test_pages_are_the_whole_list_in_order(
    database: Database, storage: SqlStorage, asked: FiringQuery
) -> None:
    """Nothing twice and nothing left out, the worst first and then the newest, whoever asks for whatever."""
    assert storage is not None
    stored(database, rows())
    expected = [each for each in rows() if fits(asked, each)]
    with database.transaction() as connection:
        found = walked(connection, asked)
        assert read_page(connection, asked).total == len(expected)
    assert sorted(names(found)) == sorted(
        (each["group"], each["rule"], each["subject"], each["fired_at_ms"]) for each in expected
    )
    order = [(WORST_FIRST.index(each.severity), -each.fired_at_ms) for each in found]
    assert order == sorted(order)


async def test_what_ends_between_two_pages_moves_no_other(database: Database, storage: SqlStorage) -> None:
    """The page that follows begins behind the last alarm, which may be over by then."""
    assert storage is not None
    stored(database, rows())
    with database.transaction() as connection:
        whole = names(walked(connection, FiringQuery(500)))
        page = read_page(connection, FiringQuery(20))
        connection.exec_driver_sql("UPDATE alarms SET resolved_at_ms = 5 WHERE severity = 'critical'")
        rest = names(read_page(connection, FiringQuery(500, after=page.following)).rows)
    over = {key for key in whole if key not in rest}
    assert rest == [each for each in whole[20:] if each not in over]
    assert len(rest) == sum(not each["resolved_at_ms"] and each["severity"] != "critical" for each in rows())


async def test_how_many_there_are_is_counted_up_to_a_bound(database: Database, storage: SqlStorage) -> None:
    """A herd whose brokers are gone has an alarm a task."""
    assert storage is not None
    stored(
        database,
        [
            ORDINARY
            | {"group": "g", "rule": "r", "subject": f"task:{number}", "fired_at_ms": 1, "severity": "info"}
            for number in range(COUNTED_AT_MOST + 5)
        ],
    )
    with database.transaction() as connection:
        assert read_page(connection, FiringQuery(1)).total == COUNTED_AT_MOST


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("asked", [each for each in ASKED if each.group != "Trains"], ids=str)
@pytest.mark.parametrize("after", [None, AFTER], ids=["first", "later"])
async def test_a_page_is_read_along_an_index(
    database: Database, storage: SqlStorage, asked: FiringQuery, after: Place | None
) -> None:
    """Never the table, and never more to sort than what the parts of a page have."""
    assert storage is not None
    with database.transaction() as connection:
        statement = _page(asked._replace(after=after)).compile(
            connection, compile_kwargs={"literal_binds": True}
        )
        plan = [step[3] for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]
    reads = [step for step in plan if " alarms" in step]
    assert reads
    assert all(step.startswith("SEARCH alarms USING INDEX alarms_firing") for step in reads)
    assert len([step for step in plan if "TEMP B-TREE" in step]) == 1


MANY = """
INSERT INTO alarms ("group", rule, subject, fired_at_ms, kind, severity, since_ms, told_at_ms, resolved_at_ms,
  acknowledged_at_ms, receivers)
SELECT (ARRAY['flights', 'flights2', 'Trains', 'a_b', 'aXb'])[1 + mod(n, 5)],
  (ARRAY['lag', 'failed'])[1 + mod(n / 5, 2)], 'task:t' || n, 1 + n / 100, 'failed',
  (ARRAY['critical', 'warning', 'info'])[1 + mod(n / 10, 3)], 1, 0, 0, 0, '[]'::bytea
FROM generate_series(0, 99999) n
"""
"""A hundred began at a time."""


def read_by(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a plan of PostgreSQL's that read alarms, and how they do it."""
    if plan.get("Relation Name") == "alarms":
        yield plan
    for inner in plan.get("Plans", ()):
        yield from read_by(inner)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("is_analyzed", [True, False], ids=["known", "not-known-yet"])
async def test_a_page_is_read_along_an_index_of_postgresql(
    database: Database,
    storage: SqlStorage,
    is_analyzed: bool,  # noqa: FBT001 - a table
) -> None:
    """Of 100,000 that fire, few more are read than told, whether or not it has looked at what there is."""
    assert storage is not None
    database.run(MANY, *["ANALYZE alarms"] * is_analyzed)
    with database.transaction() as connection:
        for asked, after in product(ASKED, (None, AFTER._replace(fired_at_ms=500))):
            page = _page(asked._replace(limit=100, after=after))
            statement = str(page.compile(connection, compile_kwargs={"literal_binds": True}))
            (plan,) = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}").scalar_one()
            for step in read_by(plan["Plan"]):
                assert step["Index Name"].startswith("alarms_firing"), (asked, after, step)
                assert step["Actual Rows"] + step.get("Rows Removed by Filter", 0) < 1000, (asked, step)


@pytest.mark.parametrize("text", ["", "x", "é", "bnVsbA", "WzFd", "W" * 4001])
def test_what_is_no_place_is_none(text: str) -> None:
    """Whoever makes one up is told so by the caller."""
    assert place_of(text) is None


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_over_http_a_token_of_one_group_pages_through_it_only(
    database: Database, session: aiohttp.ClientSession
) -> None:
    """List and page, whatever else is asked for; a place that nobody was given is refused by its field."""
    tokens = Tokens(database.url)
    mine = {"Authorization": f"Bearer {await tokens.make(Role.VIEWER, 'flights')}"}
    stored(database, rows())
    expected = sum(fits(FiringQuery(1, may_know=("flights",)), each) for each in rows())
    async with serving(database.url) as url:
        found: list[Any] = []
        place: str | None = ""
        while place is not None:
            async with session.get(f"{url}/v1/alarms?limit=5{place}", headers=mine) as answer:
                page = await answer.json()
            found += page["alarms"]
            assert page["total"] == expected
            place = page["next"] and f"&after={page['next']}"
        assert (len(found), {each["group"] for each in found}) == (expected, {"flights"})
        async with session.get(f"{url}/v1/alarms?after=x", headers=mine) as answer:
            refused = await answer.json()
        assert (answer.status, refused["message"]) == (400, "after: is not the next of a page of alarms")
        async with session.get(f"{url}/alarms", headers=mine) as answer:
            shown = await answer.text()
        assert (f"{expected} alarms fire" in shown, "Trains" in shown) == (True, False)
