"""What is seen of a query of the worker's own JVM that gets nowhere: stacks, and the scheduler's queue.

Some hundred calls to Java, 10 to 200 ms: for a query that has been silent for long.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from worker.spark.classic.pools import POOL
from worker.spark.whereabouts import SPARK_TASK, PythonFrame, Seen, TaskSetSeen, ThreadSeen

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEPTH: Final = 200
"""Frames of a stack that are read, from the innermost on."""
_MOST_EXECUTORS: Final = 3
"""Threads of executors that are looked at."""
_FRAME: Final = re.compile(r"(?:[^(]*/)?([^(/]+)\(")
"""As in `app//org.apache.spark.SparkContext.runJob(SparkContext.scala:2496)`."""
_LAMBDA: Final = "$$Lambda"
"""Of frames that Java makes up; what is called by them comes next."""


def look(jvm: Any, query: Any, thread: Any, occupant: int | None) -> Seen | None:
    """As it is now; None if the query's thread is over.

    Args:
        jvm: Py4J's view of the JVM.
        query: Java's own.
        thread: the one that the query runs in, Java's.
        occupant: the thread of this process that does the batch under way, if one does.
    """
    beans = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    info = beans.getThreadInfo(thread.getId(), _DEPTH)
    if info is None:
        return None
    pool = str(query.name())
    task_sets = list(_task_sets(query.sparkSession().sparkContext().taskScheduler().rootPool()))
    stages = {each.stage for each in task_sets if each.pool == pool and each.running}
    executors = list(_executors(beans, stages)) if stages else []
    its = _thread(info)
    is_deadlocked = its.owner is not None and _is_deadlocked(beans, thread.getId())
    return Seen(pool, its, task_sets, executors, list(_python(occupant)), is_deadlocked)


def _is_deadlocked(beans: Any, thread_id: int) -> bool:
    """Whether a thread waits in a circle, by Java's own search for these."""
    return thread_id in (beans.findDeadlockedThreads() or ())


def _task_sets(root: Any) -> Iterator[TaskSetSeen]:
    """In whichever pool they are."""
    queue = root.getSortedTaskSetQueue()
    for number in range(queue.length()):
        each = queue.apply(number)
        yield TaskSetSeen(
            _pool(each),
            each.stageId(),
            each.numTasks(),
            each.tasksSuccessful(),
            each.runningTasks(),
        )


def _pool(task_set: Any) -> str:
    """The one that its query asked for; a FIFO scheduler has all of them in a pool without a name."""
    properties = task_set.taskSet().properties()
    asked_for = None if properties is None else properties.getProperty(POOL)
    return str(task_set.parent().name() if asked_for is None else asked_for)


def _executors(beans: Any, stages: set[int]) -> Iterator[ThreadSeen]:
    """Some of those that are at these stages; on a cluster there are none in this JVM."""
    found = 0
    for info in beans.getThreadInfo(beans.getAllThreadIds()):
        if info is None:  # it has ended meanwhile
            continue
        name = SPARK_TASK.match(str(info.getThreadName()))
        if name is None or int(name[1]) not in stages:
            continue
        deep = beans.getThreadInfo(info.getThreadId(), _DEPTH)
        if deep is not None:
            yield _thread(deep)
            found += 1
        if found == _MOST_EXECUTORS:
            return


def _thread(info: Any) -> ThreadSeen:
    lock, owner = info.getLockName(), info.getLockOwnerName()
    frames = [name for each in info.getStackTrace() if (name := frame_of(str(each.toString()))) is not None]
    return ThreadSeen(
        str(info.getThreadName()),
        frames,
        None if lock is None else str(lock).partition("@")[0],
        None if owner is None else str(owner),
    )


def frame_of(text: str) -> str | None:
    """Class and method of Java's text of a frame; None of one that says nothing."""
    found = None if _LAMBDA in text else _FRAME.match(text)
    return None if found is None else found[1]


def _python(thread: int | None) -> Iterator[PythonFrame]:
    """The frames of a thread of this process, the innermost first."""
    frame = None if thread is None else sys._current_frames().get(thread)  # noqa: SLF001 - the documented way
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "?"))
        yield PythonFrame(module, frame.f_code.co_qualname, frame.f_lineno)
        frame = frame.f_back
