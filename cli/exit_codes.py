"""The exit codes of `sparkherd`; docs/command-line.md has them for people."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
FENCED: Final = 3
ENGINE_DIED: Final = 4
REFUSED: Final = 5
INTERRUPTED: Final = 130

MEANINGS: Final = {
    DONE: "done; of a daemon: stopped in order",
    FAILED: "failed: the manager refused or is not there, what was waited for did not come, a task is FAILED",
    USAGE: "used wrongly or misconfigured: nothing was begun",
    FENCED: "`worker`: another process carries its instance id",
    ENGINE_DIED: "`worker`, `run`: Spark is lost: its JVM died or hung, or its Spark Connect server is gone",
    REFUSED: "`worker`: the manager refuses it for good",
    INTERRUPTED: "interrupted with Ctrl-C before it was done "
    "(`groups watch` and `events --follow`, which are ended so: 0)",
}
"""What each code says, whichever command it is from."""
