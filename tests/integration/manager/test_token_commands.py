"""`sparkherd tokens`, on real databases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.main import run

if TYPE_CHECKING:
    from tests.integration.manager.backends import Database


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_token_s_life(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """Made in a database that nobody has used, shown once, listed without it, and revoked."""
    on = ["--database", database.url]
    assert (
        run(["tokens", "create", "--role", "worker", "--group", "fl*", "--expires-in", "90d", "host-7", *on])
        == 0
    )
    text = capsys.readouterr().out.strip()
    assert run(["tokens", "list", *on]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("host-7", "worker", "fl*", "live", text.split("_")[1]))
    assert text.split("_", 2)[2] not in shown
    assert run(["tokens", "revoke", text.split("_")[1], "--json", *on]) == 0
    assert _json(capsys)["revoked"] is True
    assert run(["tokens", "list", "--json", *on]) == 0
    [token] = _json(capsys)["tokens"]
    assert token["expires_at_ms"] - token["created_at_ms"] == 90 * 86_400_000
    assert token["revoked_at_ms"] is not None
    assert database.value("SELECT count(*) FROM tokens") == 1
    stored = bytes(database.value("SELECT digest FROM tokens"))
    assert len(stored) == 32
    assert text.encode() not in stored


def test_json_has_the_token_once(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts."""
    assert run(["tokens", "create", "--role", "admin", "me", "--json", "--database", database.url]) == 0
    made = _json(capsys)
    assert made["token"].startswith(f"sparkherd_{made['id']}_")
    assert (made["role"], made["groups"], made["expires_at_ms"]) == ("admin", [], None)


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["create", "--role", "king", "me"], "--role"),
        (["create", "--role", "admin", "--group", "a b", "me"], "neither a group's name"),
        (["create", "--role", "admin", "--expires-in", "soon", "me"], "as 90d, 12h or 30m"),
        (["create", "me"], "--role"),
    ],
)
def test_bad_input_makes_nothing(
    database: Database, capsys: pytest.CaptureFixture[str], args: list[str], fault: str
) -> None:
    """One line, exit code 2, and no token."""
    assert run(["tokens", *args, "--database", database.url]) == 2
    assert fault in capsys.readouterr().err
    assert run(["tokens", "list", "--json", "--database", database.url]) == 0
    assert _json(capsys)["tokens"] == []


def test_revoking_what_is_not_there(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and where to look."""
    assert run(["tokens", "revoke", "0123456789ab", "--database", database.url]) == 1
    assert "there is no token 0123456789ab; `sparkherd tokens list`" in capsys.readouterr().err
