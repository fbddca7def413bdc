"""Two owners at once, one of them held up at a line of its sink until the other has gone as far as it can."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sinks.base import Written

Outcome: TypeAlias = "Written | BaseException | None"


class Hold:
    """A moment at which a thread waits when it calls this."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._go_on = threading.Event()

    def __call__(self) -> None:
        """Wait there."""
        self._reached.set()
        self._go_on.wait()

    def race(
        self, held: Callable[[], Written], over: Callable[[], Written], patience_s: float
    ) -> tuple[Outcome, Outcome]:
        """What both have returned, or raised.

        Args:
            held: runs into the hold, or ends.
            over: begins then.
            patience_s: for how long, in seconds; who takes longer is taken to wait for the one that is held.
        """
        former = _Running(held, self._reached)
        self._reached.wait()
        following = _Running(over)
        following.wait(patience_s)
        self._go_on.set()
        return former.wait(), following.wait()


class _Running:
    """What a function that runs in a thread of its own has returned, or raised."""

    def __init__(self, run: Callable[[], Written], reached: threading.Event | None = None) -> None:
        """`reached` is set when it is over at the latest."""
        self._outcome: Outcome = None

        def body() -> None:
            try:
                self._outcome = run()
            except BaseException as error:  # noqa: BLE001 - it is told to whoever waits
                self._outcome = error
            finally:
                if reached is not None:
                    reached.set()

        self._thread = threading.Thread(target=body, daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float | None = None) -> Outcome:
        self._thread.join(timeout_s)
        return self._outcome
