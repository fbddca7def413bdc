"""Anyone on a route to the manager: may be killed, frozen and thawed at any moment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request
    from tests.simulation.network import Route
    from tests.simulation.world import World

NOTICED = 0.7
"""How often the connections of a killed process are closed; they are not if its machine is gone as well."""


class Participant:
    """A process. What happens to it while it is frozen, it finds when it thaws, in order."""

    def __init__(self, world: World, route: Route, name: str) -> None:
        self.world = world
        self.route = route
        self.name = name
        self.is_alive = True
        self.is_frozen = False
        self._inbox: list[Callable[[], None]] = []

    @property
    def membership_id(self) -> str:
        """Its member id, as far as it knows."""
        raise NotImplementedError

    @property
    def settled_in(self) -> int | None:
        """The generation it is settled in, None while it is on its way into one."""
        raise NotImplementedError

    def ask(self, request: Request, answer: Callable[[Any], None]) -> None:
        """Put `request` to the manager of the group."""
        self.world.note(self.name, request)
        self.route.ask(request, lambda outcome: self._when_awake(partial(self._heard, answer, outcome)))

    def _heard(self, answer: Callable[[Any], None], outcome: Any) -> None:
        self.world.note(self.name, outcome)
        answer(outcome)

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Have `action` happen then, if the process is there then."""
        self.world.after(delay_ms, lambda: self._when_awake(action))

    def _when_awake(self, action: Callable[[], None]) -> None:
        if self.is_frozen:
            self._inbox.append(action)
        elif self.is_alive:
            action()

    def kill(self) -> None:
        """It is gone between two instructions."""
        self.world.note(self.name, "killed")
        self.is_alive = False
        if self.world.happens(NOTICED):
            self.route.hang_up()

    def stop(self) -> None:
        """It is asked to leave in order."""
        raise NotImplementedError

    def freeze(self, for_ms: int) -> None:
        """It is stopped in its tracks, and goes on as if nothing had been."""
        self.world.note(self.name, f"frozen for {for_ms} ms")
        self.is_frozen = True
        self.world.after(for_ms, self._thaw)

    def _thaw(self) -> None:
        if not self.is_frozen:
            return
        self.world.note(self.name, "thawed")
        self.is_frozen = False
        inbox, self._inbox = self._inbox, []
        self.thawed()
        for action in inbox:
            self._when_awake(action)

    def thawed(self) -> None:
        """What it was in the middle of goes on."""

    def isolate(self, for_ms: int) -> None:
        """No message gets through, in either direction."""
        self.world.note(self.name, f"cut off for {for_ms} ms")
        self.route.is_cut = True
        self.world.after(for_ms, self._reconnect)

    def calm_down(self) -> None:
        """The storm is over."""

    def _reconnect(self) -> None:
        self.route.is_cut = False
