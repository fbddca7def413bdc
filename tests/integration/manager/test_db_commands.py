from __future__ import annotations

from typing import TYPE_CHECKING

from cli.main import run
from manager.storage.migrate import VERSION_TABLE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.integration.manager.backends import Database


def test_upgrade_makes_the_schema_and_status_tells_it(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it, status fails and says what to do; after it, both are content, and again."""
    assert run(["db", "status", "--database", database.url]) == 1
    assert "`sparkherd db upgrade` makes it" in capsys.readouterr().out
    for action in ("upgrade", "status", "upgrade"):
        assert run(["db", action, "--database", database.url]) == 0
        assert "up to date" in capsys.readouterr().out
    assert database.value("SELECT count(*) FROM groups") == 0


def test_a_newer_schema_is_told_and_left_alone(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status says so; upgrade refuses in one line that names the setting."""
    run(["db", "upgrade", "--database", database.url])
    database.run(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    capsys.readouterr()
    assert run(["db", "status", "--database", database.url]) == 1
    assert "schema 9999, newer than" in capsys.readouterr().out
    assert run(["db", "upgrade", "--database", database.url]) == 2
    assert capsys.readouterr().err.startswith("sparkherd: --database: its schema 9999 is newer than")
    assert database.value(f"SELECT version_num FROM {VERSION_TABLE}") == "9999"


def test_a_database_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """It names the setting, and no password."""
    url = "postgresql+asyncpg://me:secret@127.0.0.1:1/herd"
    assert run(["db", "status", "--database", url]) == 2
    err = capsys.readouterr().err
    assert err.startswith("sparkherd: --database postgresql+asyncpg://me:***@127.0.0.1:1/herd")
    assert "secret" not in err


def test_looking_makes_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name with a slip in it does not become an empty database."""
    assert run(["db", "status", "--database", f"sqlite+aiosqlite:///{tmp_path}/slip.db"]) == 1
    assert "schema none yet" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
