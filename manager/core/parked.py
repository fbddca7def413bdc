"""A request that waits for its answer; it gets exactly one (PROTOCOL.md §4)."""

from __future__ import annotations


class AnsweredTwiceError(Exception):
    """A second answer to one request: a bug in the core."""


class Parked:
    """The place of one request, from its arrival to its answer.

    `host` is the address it came from, `member_id` the member that waits with it. `settled` becomes true when
    the core has decided the answer, or has given the request up because its connection is gone; only one of
    the two can happen, once.
    """

    __slots__ = ("host", "member_id", "settled")

    def __init__(self, host: str = "") -> None:
        self.host = host
        self.member_id = ""
        self.settled = False

    def settle(self) -> None:
        """Use up the one answer.

        Raises:
            AnsweredTwiceError: it was used up before.
        """
        if self.settled:
            raise AnsweredTwiceError("a request was answered twice")
        self.settled = True
