"""What to try, by the kind of an alarm's rule: the first steps of whoever is woken up."""

from __future__ import annotations

from typing import Final

from protocol.alarm_kinds import AlarmKind

RECEIVER_AWAY: Final = "receiver_away"
"""The kind of alarms about receivers themselves."""
TEST: Final = "test"
"""The kind of a message that was asked for, to see whether it comes."""

_ANY: Final = "Look at the task and its worker in the console; `sparkherd tasks show` has the causes in full."
_HINTS: Final = {
    RECEIVER_AWAY: (
        "Nobody hears of alarms by that receiver. `sparkherd alarms receivers` shows the last error, "
        "`sparkherd alarms test-receiver` tries it again; what it missed comes when it takes messages again."
    ),
    TEST: "Nothing: this is a test.",
    AlarmKind.MANAGER_GONE.value: (
        "Look whether its process runs, and at the end of its log. The others have its groups by now, as "
        "`sparkherd managers list` shows; the alarm ends when it is back, or a day later."
    ),
    AlarmKind.MANAGER_LOOP_LAG.value: (
        "Its answers and heartbeats are late: look at the load of its machine, and how many groups and tasks "
        "it has (`sparkherd managers list`); another manager would take some."
    ),
    AlarmKind.MANAGER_MEMORY.value: (
        "Give it more memory, or another manager to share its groups with, before the system ends it."
    ),
    AlarmKind.DATABASE_FAILING.value: (
        "Look whether the database runs, takes connections, and has room on its disk. Queries run on "
        "meanwhile, but nothing can be changed or handed over."
    ),
    AlarmKind.DATABASE_SLOW.value: (
        "Look at the load, the disk and the locks of the database, and at the network to it."
    ),
}


def hint_for(kind: str) -> str:
    """One or two sentences; of use for a kind that this version does not know, too."""
    return _HINTS.get(kind, _ANY)
