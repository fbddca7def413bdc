"""What a member sends about an errand that it was told of, whatever kind that is (protocol §5, Errands)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from protocol.errands import ErrandKind
from protocol.messages.base import Request
from protocol.names import Name

MAX_RESULT_BYTES: Final = 1_048_576
"""Of a result as JSON; a worker leaves out what does not fit."""
MAX_SAID_LENGTH: Final = 2000
"""Characters of one thing that is said: a problem, a note, what went wrong."""
MOST_SAID: Final = 100
"""Problems, and notes, of one errand."""
SHORTEST_MS: Final = 1000
"""That whoever waits may give."""

SaidText = Annotated[str, msgspec.Meta(max_length=MAX_SAID_LENGTH)]


class ErrandRequest(Request, frozen=True, kw_only=True):
    """Of the member that was told of it; a subclass has the errand in the field that its kind names."""

    kind: ClassVar[ErrandKind]

    member_id: str
    instance_id: Name | None = None

    @property
    def errand(self) -> str:
        """Which one, as the heartbeat's answer had it."""
        name: str = getattr(self, self.kind.value)
        return name


class ErrandTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why an errand came to no result; a subclass says which codes there are."""

    code: str
    message: SaidText


class ErrandReport(ErrandRequest, frozen=True, kw_only=True):
    """What has come of it: a `result`, or else the `trouble` that it met."""

    result: msgspec.Struct | None = None
    trouble: ErrandTrouble | None = None

    def __post_init__(self) -> None:
        """One of the two, of a size that can be passed on."""
        if (self.result is None) is (self.trouble is None):
            raise ValueError("result: Expected either this or `trouble`")
        if self.result is not None and len(msgspec.json.encode(self.result)) > MAX_RESULT_BYTES:
            raise ValueError(f"result: Expected `object` of at most {MAX_RESULT_BYTES} bytes")
