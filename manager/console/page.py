"""What a page is made from, and what it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manager.console.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Asked:
    """The names in a page's path, empty where it has none, and its query."""

    group: str
    task: str
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it shows. `title` is the window's, `section` its entry in the navigation."""

    template: str
    title: str
    section: str
    view: Any
    last_event: int = 0


MakePage = Callable[[Sources, Asked], Awaitable[Page]]
