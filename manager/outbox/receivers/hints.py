"""What to try, by the kind of an alarm's rule: the first steps of whoever is woken up."""

from __future__ import annotations

from typing import Final

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
}


def hint_for(kind: str) -> str:
    """One or two sentences; of use for a kind that this version does not know, too."""
    return _HINTS.get(kind, _ANY)
