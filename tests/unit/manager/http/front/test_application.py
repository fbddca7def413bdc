from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from manager.http.front import application
from manager.http.front.application import Application


class Core:
    """Does not care for connections."""

    def closed(self, *_: object, **__: object) -> None:
        """Nothing comes of it."""


@pytest.fixture
def app() -> Application:
    """It answers one path, with the name in it."""

    async def named(request: Any) -> web.Response:
        return web.Response(text=request.match_info["task"])

    made = Application(Core(), 1000)
    made.add("GET", "/v1/tasks/{task}", named)
    return made


async def ask(app: Application, path: str) -> str | None:
    """The answer to GET; None if there is nothing."""
    asked: Any = SimpleNamespace(raw_path=path, rel_url=URL(path), path=path, method="GET", headers={})
    answer = await app.handle(asked)
    assert isinstance(answer, web.Response)
    return answer.text if answer.status == 200 else None


async def test_paths_are_remembered_within_bounds(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for ever new ones fills no memory, and each leads where it did."""
    monkeypatch.setattr(application, "MAX_KNOWN", 3)
    for number in (*range(10), *range(10)):
        assert await ask(app, f"/v1/tasks/t{number}") == f"t{number}"
        assert len(app._known) <= 3


@pytest.mark.parametrize("path", ["/v1/tasks/t?n=1", "/v1/nothing", "/v1/tasks/" + "t" * 600])
async def test_what_may_come_in_any_number_is_not_remembered(app: Application, path: str) -> None:
    """Paths with a query, that lead nowhere, or are very long."""
    await ask(app, path)
    assert app._known == {}
