from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cli.main import run
from manager.cluster.single_manager import ProcessLock
from manager.storage.migrate import VERSION_TABLE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.integration.manager.backends import Database

GROUP = "(\"group\", generation, state, tasks_revision) VALUES ('g', 4, 'Empty', 0)"
OWNERSHIP = (
    '("group", task, token, state, generation_id, since_ms, reset) '
    "VALUES ('g', 't', 7, 'UNASSIGNED', 4, 0, 'null')"
)


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
    assert run(["db", "restored", "--database", f"sqlite+aiosqlite:///{tmp_path}/slip.db"]) == 2
    assert f"there is no {tmp_path}/slip.db" in capsys.readouterr().err
    assert run(["db", "status", "--database", f"sqlite+aiosqlite:///{tmp_path}/slip.db"]) == 1
    assert "schema none yet" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_restored_raises_what_others_may_have_seen_more_of(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every token to the present second, every generation by a million; again, and both are higher still."""
    run(["db", "upgrade", "--database", database.url])
    database.run(f"INSERT INTO groups {GROUP}")
    database.run(f"INSERT INTO ownership {OWNERSHIP}")
    capsys.readouterr()
    least = int(time.time())
    for times in (1, 2):
        assert run(["db", "restored", "--database", database.url]) == 0
        assert "tokens of 1 tasks raised" in capsys.readouterr().out
        assert database.value("SELECT generation FROM groups") == 1_000_000 * times + 4
        token = database.value("SELECT token FROM ownership")
        assert least <= token <= time.time() + times
        least = token + 1


def test_restored_has_every_task_settled(database: Database) -> None:
    """Whoever ran one after the copy was made may still write; in the copy it may be STOPPED, and at rest."""
    run(["db", "upgrade", "--database", database.url])
    database.run(f"INSERT INTO ownership {OWNERSHIP}")
    stopped = OWNERSHIP.replace("'t', 7, 'UNASSIGNED'", "'u', 0, 'STOPPED'")
    database.run(f"INSERT INTO ownership {stopped}")
    assert run(["db", "restored", "--database", database.url]) == 0
    assert database.value("SELECT count(*) FROM ownership WHERE unsettled") == 2


def test_restored_raises_tokens_above_what_a_sink_has_seen(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """For sinks that were claimed by the clock of another year; 32 bits are the end."""
    run(["db", "upgrade", "--database", database.url])
    database.run(f"INSERT INTO ownership {OWNERSHIP}")
    restored = ["db", "restored", "--database", database.url, "--above"]
    assert run([*restored, "4102444800"]) == 0
    assert database.value("SELECT token FROM ownership") == 4_102_444_801
    assert run([*restored, "7"]) == 0
    assert database.value("SELECT token FROM ownership") == 4_102_444_802
    assert run([*restored, str(2**32)]) == 2
    assert "--above" in capsys.readouterr().err


def test_nothing_is_raised_under_a_manager_at_work(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would go on giving out numbers of its own."""
    run(["db", "upgrade", "--database", database.url])
    database.run(f"INSERT INTO groups {GROUP}")
    columns = "(manager_id, incarnation, url, started_at_ms, expires_at_ms)"
    database.run(f"INSERT INTO managers {columns} VALUES ('m', 'm-1', 'http://m', 0, {10**15})")
    assert run(["db", "restored", "--database", database.url]) == 2
    assert "a manager at http://m uses it" in capsys.readouterr().err
    assert database.value("SELECT generation FROM groups") == 4


def test_the_only_manager_of_a_file_is_noticed_by_its_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no lease that could be looked at."""
    url = f"sqlite+aiosqlite:///{tmp_path}/m.db"
    run(["db", "upgrade", "--database", url])
    lock = ProcessLock(tmp_path / "m.db")
    assert run(["db", "restored", "--database", url]) == 2
    assert "another manager uses" in capsys.readouterr().err
    lock.release()
    assert run(["db", "restored", "--database", url]) == 0


def test_an_older_schema_is_upgraded_first(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """Restored says so, and changes nothing."""
    run(["db", "upgrade", "--database", database.url])
    database.run(f"UPDATE {VERSION_TABLE} SET version_num = '0001'")
    assert run(["db", "restored", "--database", database.url]) == 2
    assert "`sparkherd db upgrade` first" in capsys.readouterr().err


def test_restored_has_what_was_packed_for_another_group_packed_again(database: Database) -> None:
    """The parcel has the token of before; what is given already is left as it is."""
    run(["db", "upgrade", "--database", database.url])
    columns = '"group", transfer, task, leaves, peer_group, peer_task, step, target, started_at_ms,'
    for task, step in (("t", "STOPPED"), ("u", "GIVEN")):
        values = f"'a', 'x', '{task}', true, 'b', '{task}', '{step}', 'RUNNING', 1, 1, NULL"
        database.run(f"INSERT INTO transfers ({columns} changed_at_ms, parcel) VALUES ({values})")
    assert run(["db", "restored", "--database", database.url]) == 0
    assert database.value("SELECT step FROM transfers WHERE task = 't'") == "STOPPING"
    assert database.value("SELECT step FROM transfers WHERE task = 'u'") == "GIVEN"
