"""What a user can get wrong: one clear line each, the right exit code, nothing half-created."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.processes import Manager, sparkherd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

GOOD = {
    "source": {"format": "rate"},
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "out"}},
}


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """One manager for all of them: none of this may harm it."""
    manager = Manager(tmp_path_factory.mktemp("manager"))
    yield manager
    assert manager.process.poll() is None, manager.log()
    assert manager.terminate() == 0, manager.log()
    assert "Traceback" not in manager.log()
    manager.stop()


def complaint(code: int, *args: str, cwd: Path) -> str:
    """The one line that a command complains with."""
    done = sparkherd(*args, cwd=cwd)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def request(manager: Manager, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """A request as no client of ours would send it."""
    connection = http.client.HTTPConnection(manager.url.removeprefix("http://"), timeout=120)
    connection.request(method, path, body)
    answer = connection.getresponse()
    document = json.loads(answer.read())
    connection.close()
    return answer.status, document


def test_port_in_use(manager: Manager, tmp_path: Path) -> None:
    """The address is named."""
    address = manager.url.removeprefix("http://")
    database = "sqlite+aiosqlite:///other.db"
    line = complaint(2, "manager", "--listen", address, "--database", database, cwd=tmp_path)
    assert address in line
    assert "in use" in line


@pytest.mark.parametrize(
    ("database", "named"),
    [
        ("sqlite+aiosqlite:////proc/nowhere/m.db", "/proc/nowhere/m.db"),
        ("sqlite+aiosqlite:////dev/null", "/dev/null"),
        ("nonsense", "--database"),
        ("oracle://host/db", "--database"),
    ],
)
def test_unusable_databases(tmp_path: Path, database: str, named: str) -> None:
    """A database that cannot be written is named before anything is served."""
    line = complaint(2, "manager", "--listen", "127.0.0.1:0", "--database", database, cwd=tmp_path)
    assert named in line


def test_a_database_that_is_away_is_named_without_its_password(tmp_path: Path) -> None:
    """Nothing listens at that port; where it was looked for can be read, the password cannot."""
    database = "postgresql+asyncpg://anna:hunter2@127.0.0.1:1/herd"
    line = complaint(2, "manager", "--listen", "127.0.0.1:0", "--database", database, cwd=tmp_path)
    assert "127.0.0.1" in line
    assert "hunter2" not in line


def test_unusable_address(tmp_path: Path) -> None:
    """A host that is not this machine's, or none at all; a port that there is not."""
    for listen in ("192.0.2.1:0", "no.such.host.invalid:0", "127.0.0.1:99999"):
        assert "--listen" in complaint(2, "manager", "--listen", listen, cwd=tmp_path)


def test_manager_not_there(tmp_path: Path) -> None:
    """An admin command says where it looked."""
    assert "http://127.0.0.1:1" in complaint(
        1, "groups", "list", "--manager", "http://127.0.0.1:1", cwd=tmp_path
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tasks: [", "tasks.yaml:1:9"),
        ("tasks: [{task: a/b, definition: {}}]", "tasks[0].task"),
        ("tasks: [{name: a}]", "tasks[0]"),
    ],
)
def test_malformed_task_files(manager: Manager, tmp_path: Path, text: str, named: str) -> None:
    """The place in the file is named."""
    (tmp_path / "tasks.yaml").write_text(text)
    apply = ("tasks", "apply", "-f", "tasks.yaml", "--group", "g", "--manager", manager.url)
    assert named in complaint(2, *apply, cwd=tmp_path)


BAD_DEFINITIONS: list[tuple[dict[str, Any], str]] = [
    ({**GOOD, "wieght": 2}, "wieght"),
    ({**GOOD, "weight": "heavy"}, "weight"),
    ({**GOOD, "sql": "SELEC value FROM source"}, "sql"),
    ({**GOOD, "sql": "SELECT (value FROM source"}, "sql"),
    ({"source": GOOD["source"]}, "sink"),
    ({}, "source"),
    ({**GOOD, "entrypoint": "a:b"}, "entrypoint"),
    ({**GOOD, "trigger": {"processing_time": "often"}}, "trigger"),
    ({**GOOD, "output_mode": "sometimes"}, "output_mode"),
    ({**GOOD, "sink": {"format": "sql", "options": {"url": "sqlite:///x.db"}}}, "sink.options.table"),
]


@pytest.mark.parametrize(("definition", "named"), BAD_DEFINITIONS)
def test_bad_definitions_create_nothing(
    manager: Manager, tmp_path: Path, definition: dict[str, Any], named: str
) -> None:
    """Through the file or straight at the API: refused with its place, and no task of the file is created."""
    group = tmp_path.name
    entries = [{"task": "good", "definition": GOOD}, {"task": "bad", "definition": definition}]
    (tmp_path / "tasks.yaml").write_text(json.dumps({"group": group, "tasks": entries}))
    done = sparkherd("tasks", "apply", "-f", "tasks.yaml", "--manager", manager.url, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(line.startswith("sparkherd: bad: ") for line in done.stderr.splitlines())
    assert f"bad: {named}" in done.stderr
    body = json.dumps({"task": "bad", "definition": definition}).encode()
    status, answer = request(manager, "POST", f"/v1/groups/{group}/tasks", body)
    assert (status, answer["error"]) == (400, "INVALID_REQUEST")
    assert named in answer["message"]
    assert request(manager, "GET", f"/v1/groups/{group}", b"")[1]["error"] == "GROUP_ID_NOT_FOUND"


@pytest.mark.parametrize(
    "body", [b"{", b"", b"[]", b"null", b'"x"', b"\xff", b'{"task": 1}', b'{"task": "a"}']
)
def test_malformed_bodies(manager: Manager, body: bytes) -> None:
    """What is no request is INVALID_REQUEST, and creates no group."""
    for path in ("/v1/groups/malformed/tasks", "/v1/groups/malformed/join"):
        status, answer = request(manager, "POST", path, body)
        assert (status, answer["error"], answer["retriable"]) == (400, "INVALID_REQUEST", False)
    assert request(manager, "GET", "/v1/groups/malformed", b"")[0] == 404


def test_worker_without_a_java(manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot start Spark says what is missing, in one line."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = sparkherd("worker", "--group", "g", "--manager", manager.url, cwd=tmp_path)
    assert done.returncode == 2
    assert "Java" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_worker_with_an_unknown_assignor(manager: Manager, tmp_path: Path) -> None:
    """The assignor is named, before anything is joined."""
    for assignor in ("best", "json:loads", "no.such:Class"):
        line = complaint(
            2, "worker", "--group", "g", "--manager", manager.url, "--assignor", assignor, cwd=tmp_path
        )
        assert assignor in line
