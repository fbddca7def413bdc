"""How long to wait for each kind of answer; longer than the manager may rightly hold it (protocol §7)."""

from __future__ import annotations

from dataclasses import dataclass

MARGIN_S = 5.0
"""For the way there and back and the work in between, beyond what an answer may be held."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time-out of each request, in seconds.

    `margin_s` shrinks with short sessions: a lost heartbeat must leave time to find another manager, and for
    that one to take over.
    """

    parked_s: float
    margin_s: float
    batch_s: float
    """Of a release or a report; what is answered a session later confirms nothing any more."""

    @classmethod
    def of(cls, *, session_timeout_ms: int, rebalance_timeout_ms: int) -> Timeouts:
        """The time-outs that go with a worker's settings."""
        return cls(
            parked_s=rebalance_timeout_ms / 1000 + MARGIN_S,
            margin_s=min(MARGIN_S, session_timeout_ms / 4000),
            batch_s=min(2 * MARGIN_S, session_timeout_ms / 1000),
        )

    def heartbeat_s(self, wait_ms: int) -> float:
        """Of a heartbeat that may be held `wait_ms`."""
        return wait_ms / 1000 + self.margin_s

    def claim_s(self, wait_ms: int) -> float:
        """Of a claim that may wait `wait_ms`; hundreds of tokens have to become durable before its answer."""
        return wait_ms / 1000 + 2 * MARGIN_S

    @property
    def leave_s(self) -> float:
        """Of a leave."""
        return self.margin_s
