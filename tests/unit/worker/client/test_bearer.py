"""The token that a worker shows: where it comes from, and when it is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from protocol.errors import StartupError
from protocol.messages.base import Response
from telemetry.secrets import scrub
from worker.client.bearer import Bearer, find_token, take_token
from worker.client.transport import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.worker.client.servers import Cluster


def test_a_file_before_the_environment(tmp_path: Path) -> None:
    """White space around it does not count; without either there is none."""
    (tmp_path / "token").write_text("from-file\n")
    environ = {"SPARKHERD_TOKEN": " from-environment "}
    assert find_token(str(tmp_path / "token"), environ).headers == {"Authorization": "Bearer from-file"}
    assert find_token(None, environ).headers == {"Authorization": "Bearer from-environment"}
    assert find_token(None, {}).headers == {}


def test_a_worker_takes_it_out_of_its_environment() -> None:
    """Else Spark and the code of tasks would inherit it."""
    environ = {"SPARKHERD_TOKEN": "secret", "OTHER": "x"}
    assert take_token(None, environ).headers == {"Authorization": "Bearer secret"}
    assert environ == {"OTHER": "x"}


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", b"a\r\nX-Other: b", b"\xff", b"x" * 2000])
def test_what_is_no_token(tmp_path: Path, content: bytes) -> None:
    """It is refused without being repeated; a header cannot be broken out of."""
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(StartupError, match=r"^--token-file .* holds no token") as error:
        find_token(str(tmp_path / "token"))
    assert "X-Other" not in str(error.value)
    assert scrub(str(error.value)) == str(error.value)
    with pytest.raises(StartupError, match="No such file"):
        find_token(str(tmp_path / "none"))


async def test_a_new_token_in_the_file_is_used_when_the_old_one_is_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    """So tokens can be changed while a worker runs; one that stays the same is shown once."""
    seen = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        is_known = seen[-1] == "Bearer new"
        body = (
            {"error": "NONE"}
            if is_known
            else {"error": "UNAUTHENTICATED", "message": "x", "retriable": False}
        )
        return web.json_response(body, status=200 if is_known else 401)

    server = await cluster.start()
    server.answers["/x"] = answer
    file = tmp_path / "token"
    file.write_text("old")
    async with Transport(find_token(str(file))) as transport:
        await transport.get(server.url + "/x", Response, 30)
        assert seen == ["Bearer old"]
        file.write_text("new")
        assert await transport.get(server.url + "/x", Response, 30) == Response()
        assert seen == ["Bearer old"] * 2 + ["Bearer new"]


def test_a_token_that_cannot_be_read_again_stays(tmp_path: Path) -> None:
    """The file may be written at that very moment."""
    (tmp_path / "token").write_text("a")
    bearer = find_token(str(tmp_path / "token"))
    (tmp_path / "token").write_text("")
    assert not bearer.renew()
    assert bearer.headers == {"Authorization": "Bearer a"}
    assert not Bearer("x").renew()
