"""When a transfer is to be looked at again: the longer nothing has come of it, the later.

A transfer may wait for days, for a worker that was frozen or for a group that cannot be read. Word of it that
has been carried is carried again all the same, for the group may have been on its way to another manager, or
its task may have come to rest since. Rules without I/O; times are in seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

FIRST_S: Final = 0.1
"""After word was carried for the first time; twice as long after each further time."""
LONGEST_S: Final = 5.0


@dataclass(slots=True)
class _Waiting:
    standing: Hashable
    due_at: float
    pause_s: float


class TransferPatience:
    """How each transfer stood when word of it was carried last, and when that is to be done again."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    def due(self, standings: Mapping[str, Hashable], now: float) -> list[str]:
        """The transfers of which word is to be carried now: what has changed, and what has waited enough.

        Args:
            standings: how all stand that are under way; the others are forgotten.
            now: the present moment.
        """
        self._waiting = {id_: each for id_, each in self._waiting.items() if id_ in standings}
        return [id_ for id_, standing in standings.items() if self._is_due(id_, standing, now)]

    def _is_due(self, transfer: str, standing: Hashable, now: float) -> bool:
        waiting = self._waiting.get(transfer)
        return waiting is None or waiting.standing != standing or waiting.due_at <= now

    def carried(self, transfer: str, standing: Hashable, now: float) -> None:
        """Word was carried of a transfer that stood so."""
        waiting = self._waiting.get(transfer)
        pause_s = FIRST_S
        if waiting is not None and waiting.standing == standing:
            pause_s = min(waiting.pause_s * 2, LONGEST_S)
        self._waiting[transfer] = _Waiting(standing, now + pause_s, pause_s)

    def rest_s(self, now: float, least: float, most: float) -> float:
        """How long nothing need be looked at: until the first is due again, `least` to `most` seconds."""
        first = min((each.due_at for each in self._waiting.values()), default=now + most)
        return min(max(first - now, least), most)
