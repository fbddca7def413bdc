"""`sparkherd doctor`: the table, the exit code, and where its settings come from."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from cli.doctor import command
from cli.doctor.finding import Check, Settings, ok, problem, warning
from tests.unit.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that checks were given; `java` warns and `spark` has a problem."""
    given: list[Settings] = []

    def python(settings: Settings) -> object:
        given.append(settings)
        return ok("3.11")

    checks = (
        Check("python", python, 10),  # type: ignore[arg-type]
        Check("java", lambda _: warning("old", "new"), 10),
        Check("spark", lambda _: problem("url https://u:geheim@h/", "other"), 10),
    )
    monkeypatch.setattr(command, "CHECKS", checks)
    return given


@pytest.mark.usefixtures("seen")
def test_one_table(sparkherd: Callable[..., Run]) -> None:
    """A line a check; a problem is exit code 1, and passwords are left out."""
    done = sparkherd("doctor")
    assert (done.code, done.err) == (1, "")
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["CHECK", "STATUS"],
        ["python", "ok"],
        ["java", "warning"],
        ["spark", "problem"],
    ]
    assert "geheim" not in done.out


@pytest.mark.usefixtures("seen")
def test_only_some_checks(sparkherd: Callable[..., Run]) -> None:
    """In the table's order; a warning is no failure. As JSON for scripts."""
    done = sparkherd("doctor", "java", "python", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {
        "checks": [
            {"check": "python", "status": "ok", "found": "3.11", "to_do": ""},
            {"check": "java", "status": "warning", "found": "old", "to_do": "new"},
        ]
    }


def test_settings_are_those_of_manager_and_worker(
    seen: list[Settings], sparkherd: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flag over environment over file; the database is the manager's, all else a worker's."""
    config = tmp_path / "herd.toml"
    config.write_text(
        '[manager]\ndatabase = "sqlite:///of-the-file.db"\ntls_cert = "theirs.pem"\n'
        '[worker]\ngroup = "flights"\ncheckpoint_root = "/of/the/file"\nspark_master = "local[4]"\n'
    )
    monkeypatch.setenv("SPARKHERD_SPARK_MASTER", "local[8]")
    done = sparkherd("doctor", "python", "--config", str(config), "--checkpoint-root", "/of/the/flag")
    assert (done.code, done.err) == (0, "")
    [settings] = seen
    assert (settings.group, settings.database) == ("flights", "sqlite:///of-the-file.db")
    assert (settings.checkpoint_root, settings.spark_master) == ("/of/the/flag", "local[8]")
    assert settings.tls_cert is None


@pytest.mark.parametrize(
    ("args", "named"), [(["frobnicate"], "frobnicate"), (["--spark-remote", "moo"], "--spark-remote")]
)
def test_usage_errors(sparkherd: Callable[..., Run], args: list[str], named: str) -> None:
    """Exit code 2 and one line, as of every command."""
    done = sparkherd("doctor", *args)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert named in done.err


def test_every_check_is_documented() -> None:
    """In the table of docs/command-line.md, in the order of the command's own."""
    page = (ROOT / "docs" / "command-line.md").read_text()
    section = page[page.index("## Before anything is started") :]
    names = re.findall(r"^\| `(\w+)` \|", section[: section.index("\n## ", 3)], re.MULTILINE)
    assert names == [check.name for check in command.CHECKS]
