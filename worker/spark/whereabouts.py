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
    """

    pool: str
    thread: ThreadSeen
    task_sets: Sequence[TaskSetSeen] = ()
    executors: Sequence[ThreadSeen] = ()
    python: Sequence[PythonFrame] = ()


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
    for thread in (seen.thread, *seen.executors):
        if thread.lock is None or (thread.owner is None and not thread.lock.startswith(_LOCKS)):
            continue
        who = "it" if thread is seen.thread else "a Spark task of it"
        owner = "" if thread.owner is None else f" that {_named(thread.owner, seen.task_sets)} has"
        place = _place(thread.frames)
        return f"{who} waits for a lock{owner} ({thread.lock}" + (f", in {place})" if place else ")")
    return None


def _named(thread: str, task_sets: Iterable[TaskSetSeen]) -> str:
    """A thread, as those call it who know tasks."""
    if found := _QUERY.match(thread):
        return f"the query of task {found[1]}"
    if found := SPARK_TASK.match(thread):
        pools = {each.stage: each.pool for each in task_sets}
        return f"a Spark task of {pools.get(int(found[1]), 'another query')}"
    return f"thread {thread}"


def _at_scheduler(seen: Seen) -> str | None:
    own = [each for each in seen.task_sets if each.pool == seen.pool]
    running = sum(each.running for each in own)
    waiting = sum(each.size - each.done - each.running for each in own)
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
