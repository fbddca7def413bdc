"""A request that waits for its answer; it gets exactly one (protocol §4)."""

from __future__ import annotations

from manager.core.connections import Connection


class AnsweredTwiceError(Exception):
    """A second answer to one request: a bug in the core."""


class Parked:
    """The place of one request, from its arrival to its answer.

    `connection` is what it came over. `settled` becomes true when the core has decided the answer, or has
    given the request up because its connection is gone; only one of the two can happen, once.
    """

    __slots__ = ("connection", "settled")

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection = connection or Connection()
        self.settled = False

    def wait(self) -> None:
        """It is not answered yet, and its connection is watched meanwhile."""
        self.connection.waiting = self

    def settle(self) -> None:
        """Use up the one answer.

        Raises:
            AnsweredTwiceError: it was used up before.
        """
        if self.settled:
            raise AnsweredTwiceError("a request was answered twice")
        self.settled = True
