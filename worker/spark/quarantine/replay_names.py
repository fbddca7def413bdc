"""What replays are called: in the rows that they have taken, and in the sink that they write to; rules.

The name of a replay says by which fence the sink has it. There is one for each quarantine of a task: of one
fence for all, the last batch of another quarantine's replay would be there in place of that which is asked
for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from worker.sinks.fence import Mark, Owner


class ReplayName(NamedTuple):
    """FENCE/TOKEN/NUMBER.

    Args:
        fence: of its quarantine (`worker.spark.quarantine.identity.fence_of`).
        token: of the owner of the task.
        number: of the batch that the replay is in the sink.
    """

    fence: str
    token: int
    number: int

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The name; None if it is none, as people may write one."""
        fence, _, rest = text.partition("/")
        token, _, number = rest.partition("/")
        if not (fence and token.isdecimal() and number.isdecimal()):
            return None
        return cls(fence, int(token), int(number))

    def __str__(self) -> str:
        return f"{self.fence}/{self.token}/{self.number}"

    def is_in(self, last: Mark | None) -> bool:
        """Whether the replay is in the sink: the last batch there is of the same owner, and came no earlier.

        Args:
            last: by its fence, raised to a newer token since.
        """
        name = None if last is None or last.plan is None else ReplayName.read(last.plan)
        return name is not None and name.token == self.token and self.number <= name.number


def replay_owner(owner: Owner, fence: str) -> Owner:
    """In whose name rows are played again: the task's, beside its batches, from one quarantine."""
    return replace(owner, task=f"{owner.task}~{fence}~replay", resets=0, skips=True)
