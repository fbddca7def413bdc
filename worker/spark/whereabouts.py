"""Where a query is that gets nowhere, from stacks and the scheduler's queue: a rule without I/O."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CALLBACK: Final = ".PythonForeachBatchHelper$"
"""Spark's class that hands a batch to Python."""
_STEPS: Final = (
    (("constructNextBatch", ".getBatch"), "asks its source what there is"),
    (("markMicroBatch", "commitSources", ".OffsetSeqLog.", ".CommitLog."), "keeps its checkpoint"),
    ((".addBatch",), "writes into its sink"),
    (("runBatch",), "does its batch"),
    (("populateStartOffsets", "logicalPlan"), "begins: it reads its checkpoint, and asks its source"),
)
"""Spark's own methods of a query's thread, and what it does there; the first that is found counts."""
_PYTHON: Final = (
    ("org.apache.spark.sql.execution.python.", "in Python functions of its query"),
    ("org.apache.spark.api.python.", "in Python"),
)
SPARK_TASK: Final = re.compile(r"Executor task launch worker for task \S+ in stage (\d+)\.")
"""The name of a thread that a Spark task runs in, with its stage."""
_PLUMBING: Final = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "scala.", "py4j.")
_LOCKS: Final = ("java.util.concurrent.locks.Reentrant", "java.util.concurrent.locks.StampedLock")
_LAMBDA: Final = re.compile(r"\$anonfun\$(\w+?)\$\d+(?:\$adapted)?$")
_QUERY: Final = re.compile(r"stream execution thread for (.+) \[id = ")
_USERS: Final = "worker.spark.batches.rows"
"""Our module that calls an entry point's function with a batch."""
_LIBRARIES: Final = sys.stdlib_module_names | {"pyspark", "py4j"}


class ThreadSeen(NamedTuple):
    """A thread of Java's: `frames` are `package.Class.method`, the innermost first.

    `lock` is the class of what it waits for, `owner` the name of the thread that has that.
    """

    name: str
    frames: Sequence[str]
    lock: str | None = None
    owner: str | None = None


class TaskSetSeen(NamedTuple):
    """The Spark tasks of one stage: how many there are, how many are done, how many run."""

    pool: str
    stage: int
    size: int
    done: int
    running: int


class PythonFrame(NamedTuple):
    """A frame of the thread in which a batch is done in Python."""

    module: str
    function: str
    line: int


class Seen(NamedTuple):
    """Of one query: its thread, what Spark's scheduler has, those executors' threads that are at its stages.

    `pool` is its own; `python` are the frames in which a batch of it is done, the innermost first.
    `is_deadlocked` says that whoever has what its thread waits for waits for that thread in turn.
    """

    pool: str
    thread: ThreadSeen
    task_sets: Sequence[TaskSetSeen] = ()
    executors: Sequence[ThreadSeen] = ()
    python: Sequence[PythonFrame] = ()
    is_deadlocked: bool = False


class Whereabouts(NamedTuple):
    """What a query is at, in one line; whether others hold it up, so that to end it would mend nothing."""

    words: str
    is_held_up: bool = False


def whereabouts_of(seen: Seen) -> Whereabouts:
    """All that is known of it."""
    return Whereabouts(told(seen), is_held_up(seen))


def is_held_up(seen: Seen) -> bool:
    """Whether the query waits for another one, or for executors that it has none of.

    One that waits for itself is not held up: for a core that a job of its own has, for a lock that a Spark
    task of its own has, or for somebody who waits for it.
    """
    waiting = next(_waiting_for_locks(seen), None)
    if waiting is not None:
        return _is_of_another(waiting.owner, seen) and not seen.is_deadlocked
    running, to_run = _own_tasks(seen)
    return to_run > 0 and running == 0


def _is_of_another(thread: str | None, seen: Seen) -> bool:
    """Whether that is a thread of another query; a thread of nobody's may be one of its own."""
    if thread is None:
        return False
    if found := _QUERY.match(thread):
        return found[1] != seen.pool
    if found := SPARK_TASK.match(thread):
        return _pool_of(int(found[1]), seen.task_sets) != seen.pool
    return False


def told(seen: Seen) -> str:
    """What the query is at, or waits for, in one line."""
    waiting = _at_lock(seen) or _at_scheduler(seen)
    doing = _in_python(seen.python) if any(_CALLBACK in frame for frame in seen.thread.frames) else None
    if waiting is not None:
        return waiting if doing is None else f"{waiting}; it {doing}"
    if doing is not None:
        return f"it {doing}"
    step = next((words for names, words in _STEPS if _any_in(names, seen.thread.frames)), "runs")
    place = _place(seen.thread.frames)
    return f"it {step}" + (f", in {place}" if place else "")


def _at_lock(seen: Seen) -> str | None:
    thread = next(_waiting_for_locks(seen), None)
    if thread is None:
        return None
    who = "it" if thread is seen.thread else "a Spark task of it"
    owner = "" if thread.owner is None else f" that {_named(thread.owner, seen.task_sets)} has"
    place = _place(thread.frames)
    return f"{who} waits for a lock{owner} ({thread.lock}" + (f", in {place})" if place else ")")


def _waiting_for_locks(seen: Seen) -> Iterator[ThreadSeen]:
    """Its own thread first, then those of its Spark tasks."""
    for thread in (seen.thread, *seen.executors):
        if thread.lock is not None and (thread.owner is not None or thread.lock.startswith(_LOCKS)):
            yield thread


def _named(thread: str, task_sets: Iterable[TaskSetSeen]) -> str:
    """A thread, as those call it who know tasks."""
    if found := _QUERY.match(thread):
        return f"the query of task {found[1]}"
    if found := SPARK_TASK.match(thread):
        return f"a Spark task of {_pool_of(int(found[1]), task_sets) or 'another query'}"
    return f"thread {thread}"


def _pool_of(stage: int, task_sets: Iterable[TaskSetSeen]) -> str | None:
    return next((each.pool for each in task_sets if each.stage == stage), None)


def _at_scheduler(seen: Seen) -> str | None:
    running, waiting = _own_tasks(seen)
    if running:
        behind = f", {waiting} wait" if waiting else ""
        return f"Spark computes its batch: {running} of its Spark tasks run{behind}{_at_executors(seen)}"
    if not waiting:
        return None
    others = Counter[str]()
    for each in seen.task_sets:
        others[each.pool] += each.running
    running_ones = ", ".join(f"{count} of {pool}" for pool, count in others.most_common() if count)
    if running_ones:
        return f"it waits for the scheduler: {waiting} Spark tasks of it wait, while {running_ones} run"
    return f"it waits for executors: {waiting} Spark tasks of it wait, and none runs"


def _own_tasks(seen: Seen) -> tuple[int, int]:
    """How many of its Spark tasks run, and how many wait."""
    own = [each for each in seen.task_sets if each.pool == seen.pool]
    return sum(each.running for each in own), sum(each.size - each.done - each.running for each in own)


def _at_executors(seen: Seen) -> str:
    """Where one of its Spark tasks is; nothing is known of executors elsewhere."""
    for thread in seen.executors:
        for package, words in _PYTHON:
            if any(frame.startswith(package) for frame in thread.frames):
                return f", {words}"
        if place := _place(thread.frames):
            return f", in {place}"
    return ""


def _in_python(frames: Sequence[PythonFrame]) -> str | None:
    """Which step of its batch it is at, by the innermost frame that is a sink's or the user's."""
    inside = step = None
    caller, package = "", None
    for frame in reversed(frames):
        top = frame.module.partition(".")[0]
        if top == "worker":
            caller, package, inside = frame.module, None, f"is in {_shown(frame)}"
            if frame.module.startswith("worker.sinks."):
                step = f"writes into its sink, in {_shown(frame)}"
        elif top not in _LIBRARIES and caller == _USERS and package in {None, top}:
            package = top
            step = f"runs code of the user, in {_shown(frame)}, line {frame.line}"
    return step or inside


def _shown(frame: PythonFrame) -> str:
    return f"{frame.module}.{frame.function.replace('<locals>.', '')}"


def _place(frames: Iterable[str]) -> str | None:
    """The innermost method that says something, with its class."""
    return next(_told_places(frames), None)


def _told_places(frames: Iterable[str]) -> Iterator[str]:
    for frame in frames:
        if not frame.startswith(_PLUMBING) and "$Proxy" not in frame:
            kind, _, method = frame.rpartition(".")
            found = _LAMBDA.search(method)
            yield f"{kind.rpartition('.')[2].rstrip('$')}.{found[1] if found else method}"


def _any_in(names: Iterable[str], frames: Iterable[str]) -> bool:
    return any(name in frame for frame in frames for name in names)
