"""The generated half of docs/rest-api.md; `python -m tests.unit.docs.rest_reference` writes it anew."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from manager.http.front.parameters import parameters_of
from manager.http.openapi.description import tag_of
from tests.fakes.endpoints import api_endpoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.http.endpoint import Endpoint
    from manager.http.front.parameters import Parameter

PAGE = Path(__file__).parents[3] / "docs" / "rest-api.md"
MARK = "<!-- what follows is generated: python -m tests.unit.docs.rest_reference -->\n"
TITLES = {
    "groups": "Groups and their members",
    "tasks": "Tasks",
    "transfers": "Transfers between groups",
    "sinks": "Sinks",
    "alarms": "Alarms",
    "events": "Events",
    "audit": "Audit log",
    "assignors": "Assignors",
    "managers": "Managers",
    "coordinator": "Coordinator",
    "members": "What members send",
    "manager": "The manager itself",
}
HEAD = "| request | effect | role | success | errors of its own |\n|---|---|---|---|---|\n"


def reference() -> str:
    """One table for each part of the API, a line for each operation."""
    order = list(TITLES)
    endpoints = sorted(api_endpoints(), key=lambda each: order.index(tag_of(each)))
    return "".join(_section(tag, list(found)) for tag, found in groupby(endpoints, tag_of))


def _section(tag: str, endpoints: list[Endpoint]) -> str:
    return f"\n## {TITLES[tag]}\n\n{HEAD}" + "".join(map(_line, endpoints))


def _line(endpoint: Endpoint) -> str:
    role = endpoint.role.value if endpoint.role is not None else "anybody"
    cells = (
        f"`{endpoint.method} {endpoint.path}{_query(endpoint)}`" + "".join(_more(endpoint)),
        endpoint.summary,
        f"{role}, worker" if endpoint.workers_too else role,
        ", ".join(map(str, endpoint.success)),
        ", ".join(f"`{code.name}`" for code in endpoint.errors),
    )
    return f"| {' | '.join(cells)} |\n"


def _query(endpoint: Endpoint) -> str:
    names = [each.name for each in _parameters(endpoint) if not each.is_header]
    return "?" + "&".join(f"{name}=" for name in names) if names else ""


def _more(endpoint: Endpoint) -> Iterator[str]:
    """The headers it looks at, and the type of its body in the description."""
    yield from (f", `{each.name}`" for each in _parameters(endpoint) if each.is_header)
    if endpoint.body is not None:
        yield f", `{endpoint.body.__name__}`" + (" or nothing" if endpoint.body_optional else "")


def _parameters(endpoint: Endpoint) -> tuple[Parameter, ...]:
    return parameters_of(endpoint.asks) if endpoint.asks is not None else ()


def main() -> None:
    """Write it into the page."""
    by_hand, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(by_hand + MARK + reference())


if __name__ == "__main__":
    main()
