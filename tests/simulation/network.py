"""What lies between: messages that come late, twice, or not at all, and connections that break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request
    from tests.simulation.manager import Asked, SimManager
    from tests.simulation.world import World

BROKEN = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the connection broke")


@dataclass
class Weather:
    """How bad it is: probabilities a message."""

    lost: float = 0.02
    twice: float = 0.02
    cut: float = 0.01
    delay_ms: tuple[int, int] = (0, 30)


class Network:
    """Carries a request there and its one answer back; the caller always hears something."""

    def __init__(self, world: World, manager: SimManager) -> None:
        self.world = world
        self.manager = manager
        self.weather = Weather()

    def ask(self, request: Request, answer: Callable[[Any], None]) -> None:
        """Send `request`; `answer` is called once, with the manager's answer or with broken news."""
        call = _Call(self, answer)
        if self.world.happens(self.weather.lost):
            self.world.after(self.world.some(50, 500), lambda: call.finish(BROKEN))
            return
        self._deliver(request, call)
        if self.world.happens(self.weather.twice):
            self._deliver(request, _Call(self, lambda _: None))

    def _deliver(self, request: Request, call: _Call) -> None:
        self.world.after(self._delay(), lambda: call.arrive(request))
        if self.world.happens(self.weather.cut):
            self.world.after(self.world.some(0, 2000), call.cut)

    def _delay(self) -> int:
        return self.world.some(*self.weather.delay_ms)


class _Call:
    """One request on one connection."""

    def __init__(self, network: Network, answer: Callable[[Any], None]) -> None:
        self.network = network
        self.answer = answer
        self.asked: Asked | None = None
        self.life = -1
        self.is_over = False

    def arrive(self, request: Request) -> None:
        if self.is_over:
            return
        manager = self.network.manager
        self.life = manager.life
        self.asked = manager.handle(request, self.answered)

    def answered(self, outcome: Any) -> None:
        network = self.network
        lost = network.world.happens(network.weather.lost)
        network.world.after(network._delay(), lambda: self.finish(BROKEN if lost else outcome))

    def cut(self) -> None:
        """The connection breaks: the manager notices, and so does the caller."""
        if self.asked is not None and not self.is_over:
            self.network.manager.disconnect(self.asked, self.life)
        self.finish(BROKEN)

    def finish(self, outcome: Any) -> None:
        if not self.is_over:
            self.is_over = True
            self.answer(outcome)
