from __future__ import annotations

import pytest

from worker.isolation.deaths import Death, Exit

HEAP_SPACE = "Terminating due to java.lang.OutOfMemoryError: Java heap space"
KILLED = Exit(-9)
OUT_OF_MEMORY = "the JVM of this task ran out of memory"
PERHAPS = "; if nobody has done that, the machine or the container was out of memory"


@pytest.mark.parametrize(
    ("death", "cause"),
    [
        (
            Death(Exit(-9, HEAP_SPACE), "the JVM ended with exit code 3: perhaps", None, "512m"),
            f"{OUT_OF_MEMORY} (Java heap space): its heap is 512m, see --isolate-memory-mb",
        ),
        (
            Death(KILLED, "the JVM ended with exit code 134", None, "1g"),
            "the JVM of this task ended with exit code 134",
        ),
        (
            Death(KILLED, "the JVM was killed by signal 9", None, "1g"),
            f"the JVM of this task was killed by signal 9{PERHAPS}",
        ),
        (
            Death(KILLED, None, None, "1g"),
            f"the process of this task was killed by signal 9{PERHAPS}",
        ),
        (Death(Exit(-11), None, None, "1g"), "the process of this task was killed by signal 11"),
        (
            Death(KILLED, None, 60.0, "1g"),
            "the process of this task has not answered for 60 s and was killed; see --jvm-timeout-ms",
        ),
        (
            Death(Exit(1), None, None, "1g"),
            "the process of this task ended with exit code 1; the worker's log says more",
        ),
    ],
)
def test_a_death_is_told_by_what_is_known_for_certain(death: Death, cause: str) -> None:
    """By its JVM's word before its own, by that before what was done to it, and by its exit code last."""
    assert death.cause == cause
