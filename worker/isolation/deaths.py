"""Why the process of a task is gone, in words for its cause. Rules without I/O."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final

OUT_OF_MEMORY: Final = "Terminating due to java.lang.OutOfMemoryError"
"""What a JVM says on its standard output before it ends by -XX:+ExitOnOutOfMemoryError."""
_PERHAPS_MEMORY: Final = "; if nobody has done that, the machine or the container was out of memory"
_OF_JVM: Final = "the JVM "


@dataclass(frozen=True, slots=True)
class Exit:
    """How the process of a task has ended.

    Args:
        code: its exit code, minus the number of the signal that has killed it.
        out_of_memory: what its JVM has said of being out of memory, or None.
    """

    code: int
    out_of_memory: str | None = None


@dataclass(frozen=True, slots=True)
class Death:
    """All that is known of a process that nobody had asked to end.

    Args:
        exit: how it has ended.
        lost: what it has said of its JVM's end before its own.
        silent_s: how long it had not answered, in seconds, when the worker killed it for that.
        heap: what its JVM may use, as Spark's settings write it.
    """

    exit: Exit
    lost: str | None
    silent_s: float | None
    heap: str

    @property
    def cause(self) -> str:
        """One line; what is known for certain comes before what follows from it."""
        if self.exit.out_of_memory is not None:
            kind = self.exit.out_of_memory.removeprefix(OUT_OF_MEMORY).strip(": ") or "no more is known"
            return (
                f"the JVM of this task ran out of memory ({kind}): its heap is {self.heap},"
                " see --isolate-memory-mb"
            )
        if self.lost is not None:
            killed = self.lost.endswith(f"signal {signal.SIGKILL.value}")
            return self._of_this_task(self.lost) + (_PERHAPS_MEMORY if killed else "")
        if self.silent_s is not None:
            return (
                f"the process of this task has not answered for {self.silent_s:g} s and was killed;"
                " see --jvm-timeout-ms"
            )
        if self.exit.code < 0:
            told = f"the process of this task was killed by signal {-self.exit.code}"
            return told + (_PERHAPS_MEMORY if self.exit.code == -signal.SIGKILL else "")
        return f"the process of this task ended with exit code {self.exit.code}; the worker's log says more"

    @staticmethod
    def _of_this_task(how: str) -> str:
        return f"the JVM of this task {how.removeprefix(_OF_JVM)}" if how.startswith(_OF_JVM) else how
