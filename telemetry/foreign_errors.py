"""Errors of code that others wrote, plug-ins and entry points: what counts as one, and how it is told.

Such code runs in the midst of ours. What it raises may be no Exception, may raise again when it is shown, and
may be megabytes long. Whoever calls it catches `FAILURES`, and takes the words from here.
"""

from __future__ import annotations

import sys
import traceback
from threading import current_thread, main_thread
from typing import Any, Final

from telemetry.secrets import beginning, scrub, shown

FAILURES: Final = BaseException
"""What it may raise: what `sys.exit()` does, too, and what asyncio, trio or gevent cancel by."""
MOST_OF_A_LINE: Final = 10_000
"""Characters of an exception that are looked at for what is shown in one line."""
MOST_SHOWN: Final = 300
"""Characters of an exception that are shown in one line."""
_NAME: Final = vars(type)["__name__"]


def kind_of(error: BaseException) -> str:
    """The name of its class, whatever its metaclass says that is."""
    return shown(_NAME.__get__(type(error)))


def text_of(error: BaseException) -> str:
    """What it says, or that it cannot be shown; of a huge text the beginning."""
    return beginning(shown(error))


def trace_of(error: BaseException) -> str:
    """Its traceback with those that it came of; of one that cannot be shown its own frames."""
    try:
        return "".join(traceback.format_exception(error))
    except FAILURES:
        return "".join((*traceback.format_tb(error.__traceback__), f"{kind_of(error)}: {text_of(error)}\n"))


def first_line_of(error: BaseException) -> str:
    """Its type and what it says, in one line that viewers may see.

    It is cut last: half of what looks like a secret no longer looks like one.
    """
    line = scrub(f"{kind_of(error)}: {text_of(error)}", MOST_OF_A_LINE).partition("\n")[0]
    return line[:MOST_SHOWN].encode(errors="replace").decode()


def let_interrupts_through(error: BaseException) -> None:
    """Raise it again if it is Ctrl-C: to import others' code may take long, and who waits may have enough.

    An event loop takes signals in another way: what is raised in one, or in a thread, is of others' code.
    """
    asyncio: Any = sys.modules.get("asyncio")
    is_in_loop = asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001 - raises nothing
    if issubclass(type(error), KeyboardInterrupt) and not is_in_loop and current_thread() is main_thread():
        raise error
