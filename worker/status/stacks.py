"""What every thread and every task of the event loop is at: where to look when a worker hangs."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import traceback


def dump() -> str:
    """A stack each, as text; without the values of variables. To be called in the event loop."""
    parts = [_of_thread(thread) for thread in threading.enumerate()]
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    return "\n".join([*parts, *(_of_task(task) for task in tasks)])


def _of_thread(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - the documented way to ask
    stack = "".join(traceback.format_stack(frame)) if frame is not None else "  (not started)\n"
    return f"thread {thread.name}{' (daemon)' if thread.daemon else ''}\n{stack}"


def _of_task(task: asyncio.Task[object]) -> str:
    told = io.StringIO()
    task.print_stack(file=told)
    return f"task {task.get_name()}\n{told.getvalue()}"
