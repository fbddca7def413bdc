"""Which secrets a worker lets a definition use, and where they show."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import Definition, parse_definition
from telemetry.secrets import KnownSecrets, scrub
from worker.secrets import MAX_BYTES, SecretError, Secrets

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {"DB_PW": "s3cr3t-of-db", "HOME_PW": "s3cr3t-of-home", "DB_NOTHING": "", "SPARKHERD_TOKEN": "shw_x"}


@pytest.fixture(autouse=True)
def _nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test has hidden is not hidden in others."""
    known = KnownSecrets()
    monkeypatch.setattr("telemetry.secrets.SECRETS", known)
    monkeypatch.setattr("worker.secrets.SECRETS", known)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The worker's --secrets-dir."""
    path = tmp_path / "secrets"
    path.mkdir()
    (tmp_path / "outside").write_text("s3cr3t-outside")
    return path


def definition(**options: Any) -> Definition:
    """An entry point's with these options."""
    return parse_definition(json.dumps({"entrypoint": "a:b", "options": options}).encode())


def refusal(secrets: Secrets, text: str) -> str:
    """Why a definition with `text` as its option `pw` cannot be run; always for good."""
    with pytest.raises(SecretError) as error:
        secrets.resolve(definition(pw=text))
    assert error.value.permanent
    return str(error.value)


def test_all_places_are_filled(folder: Path) -> None:
    """Options of source and sink, the sink's URL, the session's settings; the values are told of."""
    (folder / "pw").write_text("s3cr3t of file\n")
    document = {
        "source": {"format": "kafka", "options": {"jaas": "user ${env:DB_PW}", "n": 1}},
        "sink": {"format": "sql", "options": {"url": "postgresql://u:${env:DB_PW}@h/db", "table": "t"}},
        "spark_conf": {"spark.x": "${file:pw}"},
    }
    given = parse_definition(json.dumps(document).encode())
    resolved = Secrets(("DB_",), str(folder), ENVIRON).resolve(given)
    assert resolved.definition.source is not None
    assert resolved.definition.source.options == {"jaas": "user s3cr3t-of-db", "n": 1}
    assert resolved.definition.sink is not None
    assert resolved.definition.sink.read_options().url == "postgresql://u:s3cr3t-of-db@h/db"
    assert resolved.definition.spark_conf == {"spark.x": "s3cr3t of file"}
    assert set(resolved.values) == {"s3cr3t-of-db", "s3cr3t of file"}
    assert "s3cr3t" not in repr(given)


def test_nothing_is_allowed_by_default(folder: Path) -> None:
    """A worker that was told nothing gives away nothing, and says what would change that."""
    (folder / "pw").write_text("x")
    closed = Secrets(environ=ENVIRON)
    assert "--allow-secret-env DB_PW" in refusal(closed, "${env:DB_PW}")
    assert "--secrets-dir" in refusal(closed, f"${{file:{folder}/pw}}")
    assert "options.pw: ${env:DB_PW} " in refusal(closed, "${env:DB_PW}")


def test_only_variables_with_an_allowed_prefix() -> None:
    """Others are refused whether they are there or not, and the worker's own settings always."""
    secrets = Secrets(("DB_", "SPARK"), environ=ENVIRON)
    assert secrets.resolve(definition(pw="${env:DB_PW}")).values == ("s3cr3t-of-db",)
    assert "may not be used" in refusal(secrets, "${env:HOME_PW}")
    assert "may not be used" in refusal(secrets, "${env:NOT_THERE}")
    assert "is a setting of the worker" in refusal(secrets, "${env:SPARKHERD_TOKEN}")
    assert "is not set" in refusal(secrets, "${env:DB_MISSING}")
    assert "is empty" in refusal(secrets, "${env:DB_NOTHING}")


def test_only_files_in_the_folder(folder: Path) -> None:
    """Neither by an absolute path nor by a link out of it; links within it, as Kubernetes has them, work."""
    (folder / "..data").mkdir()
    (folder / "..data" / "pw").write_text("inside")
    (folder / "pw").symlink_to("..data/pw")
    (folder / "out").symlink_to("../outside")
    secrets = Secrets((), str(folder))
    assert secrets.resolve(definition(pw="${file:pw}")).values == ("inside",)
    assert secrets.resolve(definition(pw=f"${{file:{folder}/pw}}")).values == ("inside",)
    for name in ("out", str(folder.parent / "outside"), "/etc/passwd"):
        assert "is outside of the worker's --secrets-dir" in refusal(secrets, f"${{file:{name}}}")


def test_what_is_no_file_of_text(folder: Path) -> None:
    """A pipe would block for ever; each is told in one line."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    (folder / "bytes").write_bytes(b"\xff")
    (folder / "loop").symlink_to("loop")
    for name in ("pipe", "folder", "large", "bytes", "loop", "none"):
        text = refusal(Secrets((), str(folder)), f"${{file:{name}}}")
        assert text.startswith(f"options.pw: ${{file:{name}}} ")
        assert "\n" not in text


def test_a_resolved_url_is_checked() -> None:
    """What the manager could not see is refused here, without quoting it."""
    document = {
        "source": {"format": "rate"},
        "sink": {"format": "sql", "options": {"url": "${env:DB_PW}", "table": "t"}},
    }
    with pytest.raises(SecretError) as error:
        Secrets(("DB_",), None, ENVIRON).resolve(parse_definition(json.dumps(document).encode()))
    assert str(error.value).startswith("sink.options.url: ")
    assert "s3cr3t" not in str(error.value)


def test_resolved_values_are_hidden_from_then_on() -> None:
    """Whatever text of Spark's or a driver's quotes them."""
    text = "cannot log in with s3cr3t-of-db"
    assert scrub(text) == text
    Secrets(("DB_",), None, ENVIRON).resolve(definition(pw="${env:DB_PW}"))
    assert scrub(text) == "cannot log in with ***"


def test_a_rotated_secret_does_not_change_the_task(folder: Path) -> None:
    """What a query is compared by has the reference in it; the new value counts at the next start."""
    (folder / "pw").write_text("first-value")
    given = definition(pw="${file:pw}")
    secrets = Secrets((), str(folder))
    assert secrets.resolve(given).definition.options == {"pw": "first-value"}
    (folder / "pw").write_text("second-value")
    assert secrets.resolve(given).definition.options == {"pw": "second-value"}
    assert given.runs_like(definition(pw="${file:pw}"))
