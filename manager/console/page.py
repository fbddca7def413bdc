"""What a page is made from, and what it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from manager.access.authorizer import ANYBODY, Caller
from manager.console.page_data import PageData

if TYPE_CHECKING:
    from collections.abc import Mapping

    from protocol.messages.events import Event
    from protocol.roles import Role


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The names in a page's path, empty where it has none, its query, and who asks.

    `roles` are those that each operation of the API needs, by its name.
    """

    group: str
    task: str
    query: Mapping[str, str]
    caller: Caller = ANYBODY
    roles: Mapping[str, frozenset[Role]] = field(default_factory=dict)
    member: str = ""

    def may(self, operation: str) -> bool:
        """Whether who looks at the page may ask for what a button or a form of it would."""
        return self.caller.may(self.roles[operation])

    def may_see(self, event: Event) -> bool:
        """Whether the event is of a group that the caller may know of; of none, it tells of them all."""
        return not self.caller.is_limited if event.group is None else self.caller.covers(event.group)


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it shows. `title` is the window's, `section` its entry in the navigation.

    One that `stays` is not asked for again by itself: somebody works to make it.
    """

    template: str
    title: str
    section: str
    view: Any
    last_event: int = 0
    stays: bool = False


MakePage = Callable[[PageData, PageRequest], Awaitable[Page]]
