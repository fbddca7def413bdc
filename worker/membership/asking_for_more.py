"""How soon a member asks for more of what is to move to it (protocol §5, Pace). Rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

MORE = Backoff(first_s=1.0, limit_s=60.0)
"""From an assignment after which others are to follow to the join that asks for these.

Each such join has the whole group rebalance, so a leader that promises more and gives none is asked less and
less often.
"""


class AskingForMore:
    """Remembers what asking has brought.

    Args:
        chance: random numbers in [0, 1), for the jitter of the pauses.
    """

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._has = frozenset[str]()
        self._is_asking = False
        self._in_vain = 0

    def ask(self) -> None:
        """The member joins again for more."""
        self._is_asking = True

    def given(self, tasks: frozenset[str], *, is_more_to_come: bool) -> float | None:
        """The member has these tasks from now on; the seconds it waits at least before it asks for more.

        None if there is nothing to ask for.
        """
        was_asking, self._is_asking = self._is_asking, False
        has_news, self._has = bool(tasks - self._has), tasks
        if has_news or not is_more_to_come:
            self._in_vain = 0
        elif was_asking:
            self._in_vain += 1
        return MORE.delay_s(self._in_vain, self._chance()) if is_more_to_come else None
