"""What Spark has counted in passing, if it has."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Observation

PATIENCE_S: Final = 1.0
"""How long a count may be on its way, over a queue that all queries of a JVM share."""
_LOOK_AGAIN_S: Final = 0.002


def observed(observation: Observation, patience_s: float = PATIENCE_S) -> Mapping[str, Any] | None:
    """The figures of an observation whose frame was computed; None if they do not come.

    Spark leaves them out with whatever it finds need not be computed, as behind `WHERE false`; who asks for
    them by `Observation.get` waits for ever then. They count too much where a part was computed twice.

    Args:
        observation: of a frame that was computed.
        patience_s: how long to wait, in seconds.
    """
    java = getattr(observation, "_jo", None)
    if java is None:  # of Spark Connect: they came with the answer
        return observation.get or None
    deadline = time.monotonic() + patience_s
    pause = threading.Event()
    while not java.future().isCompleted():
        if time.monotonic() > deadline:
            return None
        pause.wait(_LOOK_AGAIN_S)
    return observation.get
