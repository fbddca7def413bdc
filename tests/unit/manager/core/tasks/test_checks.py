"""Checks: who does them, what becomes of them when somebody goes, and that each is answered once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.core.commands import CheckDefinition
from manager.core.tasks.errands import MOST_AT_ONCE, WAY_MS
from protocol.connectors import Formats, Needs
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.messages.checks import (
    CheckedColumn,
    CheckResponse,
    CheckResult,
    CheckTrouble,
    FetchCheckRequest,
    ReportCheckRequest,
)
from tests.unit.manager.core.bench import SESSION_MS, Ask, Bench, definition

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
KNOWING = {"checks": True}
FOUND = CheckResult(columns=(CheckedColumn("id", "bigint"),), rows=((1,),))


def workers(*metadata: dict[str, Any], instances: tuple[str | None, ...] = ()) -> tuple[Bench, list[str]]:
    """A stable group with one worker for each metadata."""
    bench = Bench()
    ids: list[str] = []
    for position, told in enumerate(metadata):
        instance = instances[position] if instances else None
        newcomer = bench.join(instance_id=instance, kind="sparkherd", metadata=told)
        for each, before in zip(ids, metadata, strict=False):
            held = bench.group.members[each].row.instance_id
            bench.join(each, held, kind="sparkherd", metadata=before)
        bench.pass_time()
        ids.append(str(newcomer.answer.member_id))
    bench.deal(ids, {})
    return bench, ids


def begin(bench: Bench, timeout_ms: int = 30_000, **placement: Any) -> Ask:
    command = CheckDefinition(
        definition=definition(**placement), rows=10, begin="beginning", timeout_ms=timeout_ms
    )
    return bench.ask(command)


def told(bench: Bench, member_id: str, known: str | None = None) -> str | None:
    """The check that a heartbeat is answered with."""
    answer = bench.heartbeat(member_id, wait_ms=0, check=known).answer
    return None if answer.check is msgspec.UNSET else str(answer.check)


def fetch(bench: Bench, member_id: str, check: str) -> Ask:
    return bench.ask(FetchCheckRequest(member_id=member_id, check=check))


def report(bench: Bench, member_id: str, check: str, **outcome: Any) -> Ask:
    return bench.ask(ReportCheckRequest(member_id=member_id, check=check, **(outcome or {"result": FOUND})))


def message(ask: Ask) -> str:
    assert isinstance(ask.answer, Failure)
    return ask.answer.message


def test_a_worker_hears_of_it_at_once_and_its_word_is_passed_on() -> None:
    """A held heartbeat is answered; what was wanted is fetched; whoever asked hears what was found."""
    bench, [worker] = workers(KNOWING)
    held = bench.heartbeat(worker, wait_ms=3000)
    asked = begin(bench)
    check = held.answer.check
    bench.pass_time(1000)
    wanted = fetch(bench, worker, check).answer
    assert (wanted.rows, wanted.begin, wanted.timeout_ms) == (10, "beginning", 29_000)
    assert msgspec.json.decode(wanted.definition) == {"sink": {"format": "sql"}, "weight": 1.0}
    assert report(bench, worker, check).error == "NONE"
    assert (asked.answer.worker, asked.answer.rows) == (worker, ((1,),))
    assert told(bench, worker) is None
    assert bench.coordinator.next_deadline() is not None
    bench.pass_time(1000)


def test_a_response_has_whatever_a_result_has() -> None:
    """With the same types and defaults: it is passed on as it comes."""
    result, response = (
        {each.name: (each.type, each.default) for each in msgspec.structs.fields(kind)}
        for kind in (CheckResult, CheckResponse)
    )
    assert {name for name in response if name not in result} == {"error", "worker"}
    assert response["rows"] == result["rows"]
    assert response.keys() >= result.keys()


def test_a_heartbeat_is_held_while_the_worker_knows_what_there_is() -> None:
    """It is answered at once when it does not know, or knows of one that is over."""
    bench, [worker] = workers(KNOWING)
    begin(bench)
    check = told(bench, worker)
    assert check is not None
    assert bench.heartbeat(worker, wait_ms=3000).answer.check == check
    assert bench.heartbeat(worker, wait_ms=3000, check=check).waits
    report(bench, worker, check)
    assert bench.heartbeat(worker, wait_ms=3000, check=check).answer.check is msgspec.UNSET


@pytest.mark.parametrize(
    ("metadata", "placement", "why"),
    [
        ({}, {}, "the workers that could are of an earlier version, which knows no checks"),
        (
            KNOWING | {"spark": "4.1.1", "formats": Formats(names=("json",))},
            {"needs": Needs(("kafka",))},
            f"no worker has the source `kafka`; start one with --packages {PACKAGE}",
        ),
    ],
)
def test_who_cannot_do_it_is_not_asked(metadata: Any, placement: Any, why: str) -> None:
    """And why nobody can is said, in the words of the assignors."""
    bench, _ = workers(metadata)
    refused = begin(bench, **placement)
    assert (refused.error, message(refused)) == ("NO_ELIGIBLE_WORKER", why)


def test_a_pin_is_kept_to() -> None:
    """Also where another worker has nothing to do, and where the one that is meant knows no checks."""
    bench, [_, second] = workers(KNOWING, KNOWING, instances=("one", "two"))
    begin(bench, worker="two")
    assert [check.member_id for check in bench.group.tasks.errands.values()] == [second]
    bench, _ = workers(KNOWING, {}, instances=("one", "two"))
    assert "earlier version" in message(begin(bench, worker="two"))


def test_an_empty_an_unknown_and_a_rebalancing_group() -> None:
    """Each is told apart."""
    bench = Bench()
    assert begin(bench).error == "GROUP_ID_NOT_FOUND"
    bench.create("t")
    assert message(begin(bench)) == "the group has no workers"
    bench, _ = workers(KNOWING)
    bench.join(kind="sparkherd", metadata=KNOWING)
    assert begin(bench).error == "REBALANCE_IN_PROGRESS"


def test_each_worker_does_one_at_a_time() -> None:
    """Two checks go to two workers, the one with fewer tasks first; the third is to come again."""
    bench, [first, second] = workers(KNOWING, KNOWING)
    begin(bench), begin(bench)
    assert {check.member_id for check in bench.group.tasks.errands.values()} == {first, second}
    refused = begin(bench)
    assert refused.error == "TOO_MANY_CHECKS"
    assert refused.answer.code.retriable
    check = told(bench, first)
    assert check is not None
    report(bench, first, check)
    assert begin(bench).waits


@pytest.mark.parametrize("how", ["says nothing", "says so", "the asker hangs up"])
def test_a_worker_that_came_to_no_result_is_not_chosen_while_another_is_free(how: str) -> None:
    """Though it has the fewest tasks, or is the first: its check may still hang, and the next would wait."""
    bench, [first, second] = workers(KNOWING, KNOWING)
    asked = begin(bench, timeout_ms=1000)
    check = told(bench, first)
    assert check is not None
    if how == "says nothing":
        bench.pass_time(1000 + WAY_MS)
    elif how == "says so":
        report(bench, first, check, trouble=CheckTrouble(code="CHECK_TIMED_OUT", message="x"))
    else:
        bench.disconnect(asked)
    assert told(bench, first) is None
    for _ in range(2):
        begin(bench)
        check = told(bench, second)
        assert check is not None
        report(bench, second, check)
    begin(bench)
    begin(bench)
    check = told(bench, first)
    assert check is not None
    report(bench, first, check)
    begin(bench)
    assert told(bench, first) is not None


def test_a_group_has_so_many_at_most() -> None:
    """However many workers it has."""
    bench, _ = workers(*[KNOWING] * (MOST_AT_ONCE + 1))
    assert all(begin(bench).waits for _ in range(MOST_AT_ONCE))
    assert begin(bench).error == "TOO_MANY_CHECKS"


@pytest.mark.parametrize("how", ["leaves", "dies"])
def test_whoever_asked_is_told_when_the_worker_goes(how: str) -> None:
    """At once when it leaves, with its session when it dies; what it says later is refused."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench)
    check = told(bench, worker)
    assert check is not None
    if how == "leaves":
        bench.leave((worker, None))
    else:
        bench.pass_time(SESSION_MS)
    assert asked.error == "CHECK_INTERRUPTED"
    assert report(bench, worker, check).error == "UNKNOWN_MEMBER_ID"


def test_a_worker_that_is_replaced_does_it_no_more() -> None:
    """The new one has a session of its own, and is not told of it."""
    bench, [worker] = workers(KNOWING, instances=("one",))
    asked = begin(bench)
    check = told(bench, worker)
    assert check is not None
    new = bench.join(instance_id="one", kind="sparkherd", metadata=KNOWING).answer.member_id
    assert asked.error == "CHECK_INTERRUPTED"
    assert report(bench, new, check).error == "UNKNOWN_CHECK"


def test_it_goes_on_through_a_rebalance() -> None:
    """A check is no task: who it was given to does not change with the generation."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench)
    check = told(bench, worker)
    assert check is not None
    bench.join(kind="sparkherd", metadata=KNOWING)
    assert report(bench, worker, check).error == "NONE"
    assert asked.answer.worker == worker


def test_the_time_limit() -> None:
    """The worker is let be, and hears so; its word is refused, and does it no harm."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench, timeout_ms=1000)
    check = told(bench, worker)
    assert check is not None
    held = bench.heartbeat(worker, wait_ms=9000, check=check)
    bench.pass_time(1000 + WAY_MS - 1)
    assert asked.waits
    bench.pass_time(1)
    assert asked.error == "CHECK_TIMED_OUT"
    assert message(asked) == f"the worker {worker} has said nothing within 1 s"
    assert held.answer.check is msgspec.UNSET
    late = report(bench, worker, check)
    assert (late.error, late.answer.code.status) == ("UNKNOWN_CHECK", 404)
    assert bench.heartbeat(worker).error == "NONE"


def test_whoever_hangs_up_is_waited_for_by_nobody() -> None:
    """The worker hears that there is nothing to do any more, and others have their turn."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench)
    check = told(bench, worker)
    assert check is not None
    held = bench.heartbeat(worker, wait_ms=3000, check=check)
    bench.disconnect(asked)
    assert held.answer.check is msgspec.UNSET
    assert fetch(bench, worker, check).error == "UNKNOWN_CHECK"
    assert begin(bench).waits


def test_the_answer_crosses_a_hang_up() -> None:
    """Whichever comes first counts; the other changes nothing."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench)
    check = told(bench, worker)
    assert check is not None
    report(bench, worker, check)
    bench.disconnect(asked)
    assert asked.answer.worker == worker


def test_only_the_worker_that_was_chosen_may_answer() -> None:
    """Another member knows of it by accident, or malice."""
    bench, [first, second] = workers(KNOWING, KNOWING)
    asked = begin(bench)
    [(check, waiting)] = bench.group.tasks.errands.items()
    other = second if waiting.member_id == first else first
    assert report(bench, other, check).error == "UNKNOWN_CHECK"
    assert asked.waits


def test_trouble_is_passed_on_with_its_code() -> None:
    """What the worker waited for when its time was over."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench)
    check = told(bench, worker)
    assert check is not None
    report(bench, worker, check, trouble=CheckTrouble(code="CHECK_TIMED_OUT", message="waited for kafka"))
    assert (asked.error, message(asked)) == ("CHECK_TIMED_OUT", "waited for kafka")


def test_a_manager_that_lets_the_group_go_leaves_nobody_waiting() -> None:
    """Whoever takes it up knows nothing of checks: they are in no database."""
    bench, [worker] = workers(KNOWING)
    asked = begin(bench)
    assert asked in bench.coordinator.evict("g")
    bench.crash()
    assert told(bench, worker) is None


def test_a_drained_worker_is_given_none() -> None:
    """As it is given no tasks."""
    bench, [worker] = workers(KNOWING)
    member = bench.group.members[worker]
    member.row = msgspec.structs.replace(member.row, draining=True)
    assert message(begin(bench)) == "every worker of the group is being drained"


def test_a_report_has_one_outcome_of_bounded_size() -> None:
    """Else it is refused where it is read."""
    body = {"member_id": "m", "check": "c"}
    for wrong in (body, body | {"result": {}, "trouble": {"code": "CHECK_TIMED_OUT", "message": ""}}):
        with pytest.raises(msgspec.ValidationError, match="either this or"):
            msgspec.convert(wrong, ReportCheckRequest)
    with pytest.raises(msgspec.ValidationError, match="at most"):
        msgspec.convert(body | {"result": {"rows": [["x" * 1_048_577]]}}, ReportCheckRequest)
    assert encode_opaque(FOUND)
