"""Who of a receiver's addresses gets which mail. Pure: events and what became of their mails go in.

All go along *together*, one mail for all of them. An address that is refused for now while others get the
mail falls *behind*: it is mailed alone, from its own place in the log of events, and goes along again when it
has all that the others were sent. So a full mailbox holds up nobody else, and nobody gets a mail twice.

If no address at all gets the mail, all of them wait for it, as any receiver does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from manager.outbox.outcomes import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


class Verdict(NamedTuple):
    """What became of a mail to those who go along together.

    Attributes:
        falls_behind: who is mailed alone from this mail on, and why.
        refusal: why it is to be sent again; None when it is done with.
        left_out: of whom nobody gets it, as the server will never take it for them.
    """

    falls_behind: Mapping[str, Refusal]
    refusal: Refusal | None
    left_out: Mapping[str, Refusal]


class Recipients:
    """The addresses of one receiver; events are known by their ids, which grow."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(addresses)
        self._behind: set[str] = set()
        self._begun = 0
        self._had: dict[str, int] = {}

    def resume(self, position: int, behind: Collection[str]) -> None:
        """Go on from what is stored: how far those are who go along together, and who is behind."""
        self._begun = max(self._begun, position)
        self._behind = set(behind)

    def is_behind(self, address: str) -> bool:
        """Whether it is mailed alone."""
        return address in self._behind

    def begin(self, event: int) -> tuple[str, ...]:
        """Who is mailed `event` together: all that are not behind, but for those that have had it."""
        self._begun = max(self._begun, event)
        return tuple(
            each for each in self.addresses if each not in self._behind and self._had.get(each, 0) < event
        )

    def handed(self, event: int, to: Sequence[str], refused: Mapping[str, Refusal]) -> Verdict:
        """The mail of `event` was handed over for `to`, but for `refused`."""
        self._had |= {each: event for each in to if each not in refused}
        for_now = {each: why for each, why in refused.items() if not why.is_final}
        for_good = {each: why for each, why in refused.items() if why.is_final}
        if len(refused) < len(self.addresses):  # somebody has got it, or gets it alone
            return Verdict(for_now, None, for_good)
        is_final = not for_now
        return Verdict({}, Refusal(told(for_now or for_good), is_final=is_final), {})

    def fall_behind(self, addresses: Iterable[str]) -> None:
        """They are mailed alone from now on."""
        self._behind.update(addresses)

    def has_all(self, position: int) -> bool:
        """Whether one that is as far as `position` misses nothing of what the others were sent."""
        return position >= self._begun

    def has_had(self, address: str, position: int) -> None:
        """It has got all up to `position`, and is not to be mailed any of it again."""
        self._had[address] = position

    def go_along(self, address: str) -> None:
        """It is mailed together with the others again."""
        self._behind.discard(address)


def told(refused: Mapping[str, Refusal]) -> str:
    """Who was refused, and why the first one was."""
    first = next(iter(refused.values())).reason
    return f"{', '.join(refused)}: {first}"
