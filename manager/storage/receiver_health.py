"""How a receiver of alarms is, as the managers of a herd know it together."""

from __future__ import annotations

import msgspec

from protocol.messages.alarm_receivers import ReceiverState


class ReceiverHealth(msgspec.Struct, frozen=True):
    """Its state, `since_ms` (since 1970), and why it last took nothing."""

    state: ReceiverState = ReceiverState.NEW
    since_ms: int | None = None
    last_error: str | None = None

    @property
    def is_away(self) -> bool:
        """Whether others were told so."""
        return self.state is ReceiverState.AWAY
