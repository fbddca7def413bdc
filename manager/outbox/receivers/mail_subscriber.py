"""A receiver of several addresses as subscribers of the log: one for all, and one for each that is behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import outcome_of
from manager.outbox.receivers.health import LONGEST_PAUSE_MS
from manager.outbox.receivers.subscriber import AlarmSubscriber

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manager.metrics.meter import Meter
    from manager.outbox.receivers.health_keeper import HealthKeeper
    from manager.outbox.receivers.mailing import Mailing
    from manager.outbox.sender import WebhookRouting
    from protocol.messages.events import Event


class MailSubscriber(AlarmSubscriber):
    """Those who go along together.

    Args:
        receiver: its name.
        mailing: the way to them.
        keeper: keeps how they are.
        meter: counts what becomes of messages.
        alone: keep how the single addresses are, by address.
    """

    def __init__(
        self,
        receiver: str,
        mailing: Mailing,
        keeper: HealthKeeper,
        meter: Meter,
        alone: Mapping[str, HealthKeeper],
    ) -> None:
        super().__init__(receiver, mailing, keeper, meter)
        self._mailing = mailing
        self._alone = alone

    async def begin(self) -> None:
        """Go on from what another manager knows of it, and of its addresses."""
        await self._mailing.begin()
        await super().begin()

    @property
    def is_away(self) -> bool:
        """Whether others were told that all are away, or one."""
        behind = (keeper for address, keeper in self._alone.items() if self._mailing.is_behind(address))
        return super().is_away or any(keeper.health.is_away for keeper in behind)


class AddressSubscriber:
    """One address, while it is behind.

    Args:
        address: which one.
        receiver: of whom it is one.
        mailing: the way to it.
        keeper: keeps how it is.
    """

    longest_pause_ms: int | None = LONGEST_PAUSE_MS

    def __init__(
        self, address: str, receiver: MailSubscriber, mailing: Mailing, keeper: HealthKeeper
    ) -> None:
        self._address = address
        self._receiver = receiver
        self._mailing = mailing
        self._keeper = keeper
        self._takes_mail = False

    @property
    def name(self) -> str:
        """By which it is known in the database."""
        return self._mailing.name_of(self._address)

    @property
    def about(self) -> Mapping[str, str]:
        """Whose it is, and which."""
        return {**self._receiver.about, "address": self._address}

    def wants(self, event: Event) -> bool:
        """What its receiver does."""
        return self._receiver.wants(event)

    async def begin(self) -> None:
        """Go on from what another manager knows of it."""
        self._takes_mail = False
        await self._mailing.begin()
        await self._keeper.begin()
        self._receiver.measure()

    async def post(self, event: Event) -> Refusal | None:
        """Mail `event` to it; None when it was taken."""
        outcome = await outcome_of(self._mailing.send_alone(self._address, event), self.name)
        self._takes_mail = not isinstance(outcome, Refusal)
        if isinstance(outcome, Refusal):
            self._receiver.count("refused")
            await self._keeper.refused(outcome.reason)
            self._receiver.measure()
            return outcome
        self._receiver.count("taken")
        return None

    async def caught_up(self, position: int) -> None:
        """It goes along with the others again, if it takes mail."""
        if self._takes_mail and await self._mailing.go_along(self._address, position, self._keeper.is_back):
            self._receiver.measure()

    def gave_up(self, event: Event) -> None:
        """It is counted; the log has it."""
        self._receiver.gave_up(event)

    def end(self) -> None:
        """Its receiver's metrics go when that ends."""


class WhileBehind:
    """Which manager mails an address alone: the one that tells its receiver, while the address is behind."""

    def __init__(self, receiver: str, address: str, mailing: Mailing, routing: WebhookRouting) -> None:
        self._receiver = receiver
        self._address = address
        self._mailing = mailing
        self._routing = routing

    def is_mine(self, webhook: str) -> bool:
        """Whether it is this manager, at the moment."""
        del webhook
        return self._routing.is_mine(self._receiver) and self._mailing.is_behind(self._address)

    def epochs(self, groups: Iterable[str], /) -> Mapping[int, int]:
        """The receiver's slot, with its epoch."""
        del groups
        return self._routing.epochs((self._receiver,))
