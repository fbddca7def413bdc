"""What to try, by the kind of an alarm: the first steps of whoever is woken up by it."""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

from protocol.alarm_kinds import AlarmKind

RECEIVER_AWAY: Final = "receiver_away"
"""The kind of alarms about receivers themselves."""
TEST: Final = "test"
"""The kind of a message that was asked for, to see whether it comes."""


class Subject(NamedTuple):
    """What an alarm is about; what is None is written in capitals, for the reader to fill in.

    `worker` is the id of a member: the one that the alarm is about.
    """

    group: str | None = None
    task: str | None = None
    worker: str | None = None
    receiver: str | None = None


_LOOK: Final = "`sparkherd tasks status {task} --group {group}`"
_RESTART: Final = "`sparkherd tasks restart {task} --group {group}`"
_WORKERS: Final = "`sparkherd workers list --group {group}`"
_TASKS: Final = "`sparkherd tasks list --group {group}`"
_DRAIN: Final = "`sparkherd workers drain {worker} --group {group}`"
_EVENTS: Final = "`sparkherd events --group {group}`"
_ANY: Final = (
    f"`sparkherd alarms list --group {{group}}` has all that fires there, {_EVENTS} what happened before."
)

HINTS: Final[dict[str, str]] = {
    AlarmKind.LAG_ROWS: (
        f"{_LOOK} shows the lag, what a batch takes and whether rows come out. If batches are done and "
        f"the lag grows, it has too little: {_WORKERS} shows the load of its worker; start another one, or "
        "have its batches take more at once. If no batch is done, look at the causes and the sink."
    ),
    AlarmKind.LAG_SECONDS: (
        f"{_LOOK} shows the lag, what a batch takes and whether rows come out. If batches are done, it has "
        f"too little: {_WORKERS} shows the load of its worker; start another one. If none is done, look at "
        "the causes and the sink."
    ),
    AlarmKind.STUCK: (
        f"{_LOOK} says what the query is at, if it says so: a lock, the source, the sink, or tasks beside it "
        f"that have the cores. If source and sink are well, {_RESTART}; it goes on from its checkpoint."
    ),
    AlarmKind.SILENT: (
        f"Look first whether anybody still writes to the source. If so, {_LOOK} shows whether batches are "
        f"done and how many rows are put aside; {_RESTART} if the source has rows that it does not see."
    ),
    AlarmKind.FAILED: (
        f"{_LOOK} has the cause. Mend that, then {_RESTART}, which also lets it out of quarantine. "
        f"{_EVENTS} shows whether it was changed before."
    ),
    AlarmKind.RESTARTING: (
        f"{_LOOK} has the last cause. One that comes again and again ends in FAILED: mend it, or have the "
        "task stand still with `sparkherd tasks pause {task} --group {group}` until source and sink are well."
    ),
    AlarmKind.STATE_MISMATCH: (
        f"{_LOOK} shows the state, its target and the worker. If the worker starts or stops it for minutes, "
        f"look at that worker's log; {_RESTART} has it begin again where it is."
    ),
    AlarmKind.UNASSIGNED: (
        f"{_LOOK} has the cause: no worker that its pin, labels or needs allow, or none with room. "
        f"{_WORKERS} shows who is there and who drains: start one, or undo a drain with "
        "`sparkherd workers drain WORKER --undo --group {group}`."
    ),
    AlarmKind.QUARANTINE: (
        "`sparkherd tasks quarantine list {task} --group {group}` shows the rows and why they were put "
        "aside. Mend the source or the definition, then "
        "`sparkherd tasks quarantine replay {task} --all --group {group}` plays them again."
    ),
    AlarmKind.STATE_SIZE: (
        f"{_LOOK} shows the state and the watermark. A watermark that stands still keeps all of it: look for "
        "a source without new rows, or in `sparkherd tasks describe {task} --group {group}` for a key "
        "without an end."
    ),
    AlarmKind.STATE_GROWING: (
        f"{_LOOK} shows the state and the watermark. If that stands still nothing is forgotten: look for a "
        "source without new rows. If not, there are more keys than before, and its worker needs memory."
    ),
    AlarmKind.CHECKPOINT_GROWING: (
        "Look at the free space of the disk of the checkpoints first: when it is full, every batch fails. "
        f"{_TASKS} names the tasks, and the worker's page in the console whose state is large."
    ),
    AlarmKind.WORKER_OVERLOADED: (
        f"{_WORKERS} shows load and capacity of all. Start another worker; if others have room, "
        "`sparkherd groups rebalance {group}` has the tasks shared out anew."
    ),
    AlarmKind.WORKER_HEAP: (
        f"{_WORKERS} shows the worker, and its page in the console which tasks take what. Before its JVM "
        f"ends with all of them, {_DRAIN} moves them away; then restart it, with more memory for its driver."
    ),
    AlarmKind.MANAGER_GONE: (
        "Look whether its process runs, and at the end of its log. The others have its groups by now, as "
        "`sparkherd managers list` shows; the alarm ends when it is back, or a day later."
    ),
    AlarmKind.MANAGER_LOOP_LAG: (
        "Its answers and heartbeats are late: look at the load of its machine, and how many groups and tasks "
        "it has (`sparkherd managers list`); another manager would take some."
    ),
    AlarmKind.MANAGER_MEMORY: (
        "Give it more memory, or another manager to share its groups with, before the system ends it."
    ),
    AlarmKind.DATABASE_FAILING: (
        "Look whether the database runs, takes connections, and has room on its disk. Queries run on "
        "meanwhile, but nothing can be changed or handed over."
    ),
    AlarmKind.DATABASE_SLOW: (
        "Look at the load, the disk and the locks of the database, and at the network to it."
    ),
    RECEIVER_AWAY: (
        "Nobody hears of alarms by that receiver, or by the address of it that is named. "
        "`sparkherd alarms receivers` shows the last error, "
        "`sparkherd alarms test-receiver {receiver}` tries it again; what it missed comes when it takes "
        "messages again."
    ),
    TEST: "Nothing: this is a test.",
}


def hint_for(kind: str, about: Subject | None = None) -> str:
    """A few sentences; of use for a kind that this version does not know, too."""
    named = (about or Subject())._asdict()
    filled = {name: name.upper() if value is None else shlex.quote(value) for name, value in named.items()}
    return HINTS.get(kind, _ANY).format_map(filled)
