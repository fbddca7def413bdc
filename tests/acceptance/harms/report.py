"""What came of a harm, for people; and whether all of it is as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.states import TaskState
from tests.acceptance.harms.catalogue import HARMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.harms.run import Outcome


def told(outcome: Outcome) -> str:
    """All of it as text."""
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    mode = "a JVM for each task" if outcome.isolate else "one JVM for all tasks of a worker"
    yield f"{outcome.harm}: {HARMS[outcome.harm].what} ({mode})"
    for when, pace in outcome.paces.items():
        yield f"  neighbours {when:<8} {pace}"
    lost, twice = (sum(each) for each in zip(*outcome.faults.values(), strict=True))
    yield f"  rows of each: {outcome.rows:,}; in all, lost {lost}, twice {twice}"
    yield f"  started anew: {', '.join(outcome.restarted) or 'no neighbour'}"
    yield f"  neighbours at the end: {', '.join(f'{name} {state}' for name, state in outcome.ends.items())}"
    yield f"  workers died: {', '.join(_deaths(outcome)) or 'none'}"
    jvms = ", ".join(f"{name} {count}" for name, count in outcome.ended_jvms.items())
    yield f"  JVMs ended until it had settled: {jvms or 'none'}"
    yield f"  logs: {outcome.log_mb:.1f} MiB"
    yield "  the harmful task:"
    yield from (f"  {line}" for line in outcome.fate.lines(outcome.began))
    settled = "NOT" if outcome.settled_s is None else f"after {outcome.settled_s:.0f} s"
    yield f"  settled {settled}, quarantined: {'yes' if outcome.is_quarantined else 'no'}"
    yield f"  then: {', '.join(sorted(outcome.watched))}"
    if outcome.after_restart is not None:
        yield f"  from the restart of its worker on: {', '.join(sorted(outcome.after_restart))}"
    yield f"  its cause: {outcome.fate.cause}"
    yield f"  {'AS IT SHOULD BE' if is_right(outcome) else 'NOT AS IT SHOULD BE'}"


def _deaths(outcome: Outcome) -> list[str]:
    return [
        f"{each.worker} at {each.at - outcome.began:.0f} s, exit code {each.code}" for each in outcome.deaths
    ]


def is_right(outcome: Outcome) -> bool:
    """Whether the herd has what it should; how long batches took is for people to judge.

    With a JVM for each task, nothing but that task may have been started anew.
    """
    return (
        outcome.settled_s is not None
        and _stays(outcome)
        and not any(map(any, outcome.faults.values()))
        and set(outcome.ends.values()) == {TaskState.RUNNING.value}
        and not (outcome.isolate and (outcome.restarted or outcome.deaths))
    )


def _stays(outcome: Outcome) -> bool:
    harm = HARMS[outcome.harm]
    seen = set(outcome.watched)
    if harm.outlasts_restart(isolate=outcome.isolate):
        seen |= outcome.after_restart or set()
    return seen == {harm.last_state}
