"""Errors of code that others wrote, plug-ins and entry points: what counts as one, and how it is told.

Such code runs in the midst of ours. What it raises may be no Exception, may raise again when it is shown, and
may be megabytes long. Whoever calls it catches `FAILURES`, and takes the words from here.
"""

from __future__ import annotations

from typing import Final

from telemetry.secrets import beginning, scrub

FAILURES: Final = BaseException
"""What it may raise: what `sys.exit()` does, too, and what asyncio, trio or gevent cancel by. So is Ctrl-C,
meanwhile, taken for its failure; daemons that are up are ended by signals, which raise nothing."""
MOST_OF_A_LINE: Final = 10_000
"""Characters of an exception that are looked at for what is shown in one line."""
MOST_SHOWN: Final = 300
"""Characters of an exception that are shown in one line."""
CANNOT_BE_SHOWN: Final = "it cannot be shown"


def text_of(error: BaseException) -> str:
    """What it says, or that it cannot be shown; of a huge text the beginning."""
    try:
        return beginning(str(error))
    except FAILURES:
        return CANNOT_BE_SHOWN


def first_line_of(error: BaseException) -> str:
    """Its type and what it says, in one line that viewers may see.

    It is cut last: half of what looks like a secret no longer looks like one.
    """
    line = scrub(f"{type(error).__name__}: {text_of(error)}", MOST_OF_A_LINE).partition("\n")[0]
    return line[:MOST_SHOWN].encode(errors="replace").decode()
