from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import ClientSession, web
from structlog.testing import capture_logs

from manager.http.front.application import Application
from manager.http.front.reading import read_body
from manager.http.front.server import Runner

if TYPE_CHECKING:
    from typing import Never

    import pytest

    from manager.http.front.reading import HttpRequest


async def broken(_: HttpRequest) -> Never:
    raise ZeroDivisionError("the database's password is hunter2")


class Core:
    """Does not care for connections."""

    def closed(self, *_: object, **__: object) -> None:
        """Nothing comes of it."""


async def test_a_bug_leaves_as_an_id_that_the_log_has_too() -> None:
    """The answer says no more than that; the log has the trace, and whom the request was about."""
    app = Application(Core(), 1000)
    app.add("GET", "/v1/groups/{group}/tasks/{task}", broken)
    runner = Runner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/groups/g/tasks/t1"
    with capture_logs() as logs:
        async with ClientSession() as session, session.get(url) as response:
            body = await response.json()
    await runner.cleanup()
    [line] = logs
    assert (response.status, body["error"]) == (500, "UNKNOWN_SERVER_ERROR")
    assert body["cause_id"] == line["cause_id"]
    assert body["message"].endswith(line["cause_id"])
    assert "hunter2" not in str(body)
    assert (line["group"], line["task"], line["path"]) == ("g", "t1", "/v1/groups/g/tasks/t1")
    assert isinstance(line["exc_info"], ZeroDivisionError)


async def test_a_body_that_is_not_what_its_header_says_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    """It is refused once, and nothing of it is in the log, where whoever may send one could fill the disk."""

    async def reading(request: HttpRequest) -> web.Response:
        return web.Response(body=await read_body(request))

    app = Application(Core(), 1000)
    app.add("POST", "/v1/read", reading)
    runner = Runner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url, headers = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/read", {"Content-Encoding": "gzip"}
    async with ClientSession() as session, session.post(url, data=b"plain", headers=headers) as answer:
        assert (await answer.json())["error"] == "INVALID_REQUEST"
    await runner.cleanup()
    assert caplog.records == []
