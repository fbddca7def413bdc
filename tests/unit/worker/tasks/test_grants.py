from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.states import Target
from tests.fakes.manager import granted
from tests.unit.worker.tasks.bench import change, grant
from worker.tasks.grants import read_grant

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


def test_a_grant_is_read() -> None:
    """Token, target, restart count and the definition come out typed."""
    grant = read_grant(granted("t", 7, "PAUSED", version=3, restart_count=2, weight=2.0))
    assert (grant.task, grant.token, grant.target) == ("t", 7, Target.PAUSED)
    assert (grant.restart_count, grant.fault) == (2, "")
    assert grant.reset is None
    assert grant.definition is not None
    assert grant.definition.weight == 2.0


def test_a_known_definition_is_not_read_again() -> None:
    """A worker with hundreds of tasks claims them all at each change of one."""
    known = read_grant(granted("t"))
    again = read_grant(granted("t", token=2, version=5), known)
    assert again.definition is known.definition


def test_a_definition_is_known_by_what_it_says() -> None:
    """Versions begin at 1 again when a task is deleted and created anew, or its database is put back."""
    known = read_grant(granted("t", sql="SELECT 1 AS one FROM source"))
    again = read_grant(granted("t", sql="SELECT 2 AS two FROM source"), known)
    assert again.definition is not None
    assert again.definition.sql == "SELECT 2 AS two FROM source"


def test_a_definition_that_cannot_be_read_is_a_fault_with_its_place() -> None:
    """A newer manager may know more than this worker does."""
    grant = read_grant(granted("t", sinc={}))
    assert grant.definition is None
    assert "sinc" in grant.fault


def test_a_definition_that_was_made_before_it_was_refused_is_a_fault() -> None:
    """A task may be older than what this worker knows of Spark."""
    grant = read_grant(granted("t", spark_conf={"spark.datasource.iceberg.url": "jdbc:derby:x"}))
    assert grant.definition is None
    assert 'spark_conf["spark.datasource.iceberg.url"]: is for the worker' in grant.fault


def test_an_unknown_target_is_a_fault() -> None:
    """Running it would be a guess."""
    grant = read_grant(granted("t", target="HIBERNATING"))
    assert grant.definition is None
    assert grant.fault == "this worker knows no target 'HIBERNATING'"


def test_a_fault_of_a_definition_that_is_known_is_told_again() -> None:
    """The cause of a FAILED task outlives its restart."""
    known = read_grant(granted("t", sinc={}))
    again = read_grant(granted("t", restart_count=1, sinc={}), known)
    assert (again.definition, again.fault) == (None, known.fault)
    assert "sinc" in again.fault


def test_a_definition_that_came_with_an_unknown_target_is_read_with_the_next_one() -> None:
    """Nothing was wrong with it."""
    known = read_grant(granted("t", target="HIBERNATING"))
    again = read_grant(granted("t", target="RUNNING"), known)
    assert (again.definition is None, again.fault) == (False, "")


async def test_a_task_whose_definition_cannot_be_read_is_failed_with_its_cause_after_a_restart(
    bench: Bench,
) -> None:
    """Whoever restarts it is told the same again."""
    grant(bench, sinc={})
    bench.assign("t1")
    await bench.settle()
    await change(bench, restart_count=1, sinc={})
    causes = [report.cause for report in bench.manager.reports("t1")]
    assert causes[-1]
    assert set(causes) == {causes[0]}


async def test_a_task_whose_target_was_not_known_runs_under_one_that_is(bench: Bench) -> None:
    """Its definition has been the same all along."""
    grant(bench, target="HIBERNATING")
    bench.assign("t1")
    await bench.settle()
    assert bench.manager.states("t1") == ["FAILED"]
    await change(bench)
    assert bench.manager.states("t1")[-1] == "RUNNING"
