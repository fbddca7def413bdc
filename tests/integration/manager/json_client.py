"""Requests of JSON to a manager under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yarl import URL

if TYPE_CHECKING:
    from aiohttp import ClientSession

DEFINITION = {
    "source": {"format": "json", "schema": "a INT", "options": {"path": "in"}},
    "sql": "SELECT a FROM source",
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "t"}},
}


class Client:
    """Requests to the manager under test."""

    def __init__(self, session: ClientSession, base: str) -> None:
        self.session = session
        self.base = base

    async def __call__(
        self, method: str, path: str, body: Any = None, raw: bytes | None = None
    ) -> tuple[int, Any]:
        arguments: dict[str, Any] = {"data": raw} if raw is not None else {"json": body}
        async with self.session.request(method, URL(self.base + path, encoded=True), **arguments) as response:
            return response.status, await response.json()
