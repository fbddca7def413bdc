"""What a worker tells of rows that did not go to the sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from definition.expectations import MOST_EXPECTATIONS, MOST_LETTERS
from protocol.messages.ownership import MAX_METRICS_BYTES
from protocol.task_metrics import MOST_INT
from tests.unit.worker.tasks.bench import change, grant
from worker.left_out import LeftOut

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench
    from worker.tasks.task_status import TaskSnapshot

SQL: dict[str, Any] = {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "t"}}


def sifting(*names: str) -> dict[str, Any]:
    """The parts of a definition that puts aside what violates any of these."""
    each = {"where": "value > 0", "on_violation": "quarantine"}
    return {"sink": SQL, "expect": [{"name": name, **each} for name in names]}


def seen(bench: Bench) -> TaskSnapshot:
    [view] = bench.runner.views()
    return view


async def told(bench: Bench) -> dict[str, Any]:
    """The figures of the last report, a second later."""
    await bench.clock.advance(1)
    return bench.manager.reports("t1")[-1].metrics or {}


async def test_what_may_be_left_out_is_known_before_the_first_batch(bench: Bench) -> None:
    """By the definition, from the grant on: the query may start later, or never."""
    bench.engine.hold("t1")
    grant(bench, **sifting("positive", "known"))
    bench.assign("t1")
    await bench.settle()
    assert seen(bench).reasons == ("positive", "known")


async def test_the_counts_of_several_queries_add_up(bench: Bench) -> None:
    """As rows do: what was put aside before a restart is still news to whoever counts by the token."""
    grant(bench, **sifting("positive"))
    await bench.run("t1")
    bench.engine.query("t1").advance(0, left_out=LeftOut(0, 3, {"positive": 3}), rows=10)
    assert await told(bench) == {"rows": 10, "dropped": 0, "quarantined": 3, "left_out": {"positive": 3}}
    bench.engine.query("t1").end("boom")
    await bench.clock.advance(5)
    bench.engine.query("t1").advance(1, left_out=LeftOut(0, 2, {"positive": 2}), rows=10)
    assert (await told(bench))["quarantined"] == 5
    assert seen(bench).totals.left_out == LeftOut(0, 5, {"positive": 5})


async def test_a_task_that_leaves_nothing_out_reports_as_it_always_did(bench: Bench) -> None:
    """And one that may says 0 from its first batch on."""
    await bench.run("t1")
    bench.engine.query("t1").advance(0, rows=10)
    assert await told(bench) == {"rows": 10}
    await change(bench, **sifting("positive"))
    bench.engine.query("t1").advance(1, rows=10)
    assert await told(bench) == {"rows": 10, "dropped": 0, "quarantined": 0, "left_out": {}}


async def test_what_is_no_reason_any_more_is_not_counted_on(bench: Bench) -> None:
    """However often a definition changes, there are no more names than it has; the rows stay counted."""
    grant(bench, **sifting("positive", "known"))
    await bench.run("t1")
    bench.engine.query("t1").advance(0, left_out=LeftOut(0, 3, {"positive": 3, "known": 1}))
    await change(bench, **sifting("known", "late"))
    await bench.clock.advance(1)
    assert seen(bench).reasons == ("known", "late")
    assert seen(bench).totals.left_out == LeftOut(0, 3, {"known": 1})


def test_the_longest_names_there_may_be_fit_into_a_report() -> None:
    """Of four bytes a letter, each with as many rows as there can be."""
    names = [f"{number:02}".rjust(MOST_LETTERS, "𠀀") for number in range(MOST_EXPECTATIONS)]
    counted = {"dropped": MOST_INT, "quarantined": MOST_INT, "left_out": dict.fromkeys(names, MOST_INT)}
    assert len(msgspec.json.encode(counted)) < MAX_METRICS_BYTES // 2
