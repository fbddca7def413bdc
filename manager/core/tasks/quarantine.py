"""Which tasks may have killed a worker, and when one of them certainly has. Rules without I/O.

A poison task kills worker after worker, each soon after it was started there. A worker that dies for another
reason, be it `kill -9` every few seconds, takes with it tasks that get through their first batch elsewhere.
So a task is held to account only for deaths in a row: whatever gets through a batch, or stays up for
`PROOF_MS`, is cleared of all before it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from manager.core.stored_rows import Blame
from protocol.messages.membership import EngineEnd

if TYPE_CHECKING:
    from manager.core.stored_rows import OwnershipRow, WorkerDeath

SUSPECT_LOSSES: Final = 2
"""Deaths in a row from which on a task is started alone. One is everyday life: with it, all that a killed
worker ran would start one by one. But an engine that ends by itself is never everyday life."""
GUILTY_EXITS: Final = 2
"""Engines that ended by themselves, the last one under this task alone: then it was this task."""
GUILTY_LOSSES: Final = 6
"""Deaths in a row of any kind, the last one under this task alone. More than for engines that say how they
ended: a worker that fell silent may have been killed from outside just while the task was starting. Where one
of three workers was killed twenty times, each time when 60 % of the workers had got through a batch, this and
`without_one_death` accused a task in 1 of 1,000 simulated groups; five deaths without it, in 13 of 1,000."""
PROOF_MS: Final = 30_000
"""A task without data gets through no batch; this long after its grant it is believed, too."""
DEATHS_KEPT: Final = 10
"""Of a task that always had others beside it."""
HOW_LENGTH: Final = 200
"""In characters, of what is told of one death."""


def exits(deaths: tuple[WorkerDeath, ...]) -> int:
    """How many of the engines have ended by themselves."""
    return sum(death.engine is EngineEnd.EXITED for death in deaths)


def is_suspect(row: OwnershipRow) -> bool:
    """Whether the task is to be started alone."""
    if row.blame is None or row.blame.quarantined:
        return False
    deaths = row.blame.deaths
    return len(deaths) >= SUSPECT_LOSSES or exits(deaths) > 0


def with_death(blame: Blame | None, death: WorkerDeath) -> Blame:
    """What is held against the task after another death."""
    deaths = (*(blame.deaths if blame is not None else ()), death)[-DEATHS_KEPT:]
    return Blame(deaths, quarantined=_is_guilty(deaths))


def without_one_death(blame: Blame) -> Blame | None:
    """What is held against the task after a worker died without it that nobody can be blamed for alone.

    Somebody else is killing workers then, and may have killed one of those.
    """
    lost = next((at for at, death in enumerate(blame.deaths) if death.engine is not EngineEnd.EXITED), None)
    if lost is None:
        return blame
    deaths = blame.deaths[:lost] + blame.deaths[lost + 1 :]
    return Blame(deaths) if deaths else None


def _is_guilty(deaths: tuple[WorkerDeath, ...]) -> bool:
    last = deaths[-1]
    if not last.alone:
        return False
    by_itself = last.engine is EngineEnd.EXITED and exits(deaths) >= GUILTY_EXITS
    return by_itself or len(deaths) >= GUILTY_LOSSES


def proof_ms(row: OwnershipRow) -> int:
    """How long after its grant a task is believed that has got through no batch.

    A large batch may take its time to run out of memory: twice as long as it took before.
    """
    deaths = row.blame.deaths if row.blame is not None else ()
    return max([PROOF_MS, *(2 * death.lived_ms for death in deaths)])


def why_waiting(row: OwnershipRow) -> str | None:
    """What a suspect waits for that is assigned already; None if it is none."""
    if row.blame is None or not is_suspect(row):
        return None
    died = _died(row.blame, "it")
    return f"{died}: it waits for its turn to be started alone"


def why_quarantined(blame: Blame) -> str:
    """The cause of a task in quarantine: what it has done, and what to do."""
    died = _died(blame, "this task")
    head = (
        f"quarantined: {died}, the last one with no other task to blame; mend it and change its definition,"
        " or restart or resume it to try again"
    )
    return "\n".join([head, *map(_line, blame.deaths)])


def _died(blame: Blame, of: str) -> str:
    count = len(blame.deaths)
    if count == 1:
        return f"1 worker died soon after it was given {of}"
    return f"{count} workers died soon after they were given {of}"


def _line(death: WorkerDeath) -> str:
    at = datetime.fromtimestamp(death.at_ms / 1000, UTC).isoformat(timespec="seconds")
    others = "" if death.alone else " (other tasks had just been started there, too)"
    return f"{at} {death.member_id}, {death.lived_ms} ms after the grant: {death.how}{others}"
