"""Whether a JVM still answers: one that hangs is alive by its process, and keeps whoever asks it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from telemetry.scope import in_scope
from worker.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

HEARTBEAT_S = 1.0
"""How often the JVM is asked, and looked after."""


class JvmHeartbeat:
    """Asks from a thread of its own, because a question to a hung JVM does not return."""

    def __init__(self, ask: Callable[[], object], limit_s: float) -> None:
        """`ask` is any question to the JVM; without an answer for `limit_s` seconds it counts as hung."""
        self._ask = ask
        self._silence = Silence(limit_s, HEARTBEAT_S)
        self._heard = threading.Event()
        self._over = threading.Event()

    def start(self) -> None:
        """Begin to ask."""
        threading.Thread(target=in_scope(self._ask_on), name="jvm-heartbeat", daemon=True).start()

    def is_alive(self) -> bool:
        """To be called every `HEARTBEAT_S` seconds: False as soon as the JVM has been silent for too long."""
        if self._heard.is_set():
            self._heard.clear()
            self._silence.heard()
            return True
        return not self._silence.look()

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()

    def _ask_on(self) -> None:
        """An error is no answer: a JVM that cannot even start a thread is of no use."""
        while not self._over.is_set():
            with contextlib.suppress(Exception):
                self._ask()
                self._heard.set()
            self._over.wait(HEARTBEAT_S)
