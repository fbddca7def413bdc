"""Checkpoint roots and databases, in folders that a test makes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cli.doctor import storage
from cli.doctor.finding import Settings, Status
from manager.storage.migrate import VERSION_TABLE, schema_known


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a file system of the type that the test writes into `mounts`."""
    monkeypatch.setattr(storage, "MOUNTS", tmp_path / "mounts")
    mount(tmp_path, "ext4")
    return tmp_path


def mount(folder: Path, kind: str) -> None:
    """Have `folder` be on a file system of this type, and all else on another."""
    line = "22 1 0:5 / {} rw,relatime shared:1 - {} source rw\n"
    (folder / "mounts").write_text(line.format("/", "overlay") + line.format(folder.resolve(), kind))


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("nfs4", Status.OK, "shared (nfs4)"),
        ("fuse.glusterfs", Status.OK, "shared"),
        ("ext4", Status.WARNING, "this machine's own (ext4)"),
        ("tmpfs", Status.WARNING, "forgets all"),
    ],
)
def test_whether_other_machines_see_the_checkpoints(
    mounted: Path, kind: str, status: Status, told: str
) -> None:
    """By the type of the file system; what was tried leaves nothing behind."""
    mount(mounted, kind)
    finding = storage.checkpoints(Settings(checkpoint_root=str(mounted)))
    assert finding.status is status
    assert told in finding.found
    assert "writable, renames whole" in finding.found
    assert [path.name for path in mounted.iterdir()] == ["mounts"]


def test_a_root_that_is_not_there_yet_is_tried_above(mounted: Path) -> None:
    """It is made by whoever starts a query, not by this."""
    finding = storage.checkpoints(Settings(checkpoint_root=f"file:{mounted}/a/b"))
    assert finding.found.startswith(f"{mounted}/a/b: will be made, ")
    assert not (mounted / "a").exists()


def test_a_root_that_cannot_be_written_to(mounted: Path) -> None:
    """A file in its place is one such."""
    finding = storage.checkpoints(Settings(checkpoint_root=str(mounted / "mounts")))
    assert (finding.status, finding.found) == (Status.PROBLEM, f"{mounted}/mounts: Not a directory")


def test_a_folder_that_takes_no_files() -> None:
    """Not even of root: no file can be made in Linux's /proc."""
    finding = storage.checkpoints(Settings(checkpoint_root="/proc"))
    assert (finding.status, finding.found.partition(":")[0]) == (Status.PROBLEM, "/proc")


def test_a_folder_that_does_not_rename_whole(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that copies: what was written is there twice."""
    monkeypatch.setattr(Path, "rename", lambda self, to: to.write_text(self.read_text()))
    finding = storage.checkpoints(Settings(checkpoint_root=str(mounted)))
    assert finding.status is Status.PROBLEM
    assert "left something else behind" in finding.found


def test_a_folder_in_which_a_file_can_be_made_twice(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers of one log would not notice each other."""
    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, mode="r", **more: real(self, mode.replace("x", "w"), **more)
    )
    finding = storage.checkpoints(Settings(checkpoint_root=str(mounted)))
    assert finding.found.endswith("lets a file be made twice")


@pytest.mark.parametrize(
    ("root", "status"), [("s3a://bucket/x", Status.WARNING), ("hdfs://host/x", Status.SKIPPED)]
)
def test_roots_that_only_spark_reaches(root: str, status: Status) -> None:
    """Object stores are warned of."""
    assert storage.checkpoints(Settings(checkpoint_root=root)).status is status


def test_a_system_that_does_not_tell_its_mounts(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the user has to know."""
    monkeypatch.setattr(storage, "MOUNTS", mounted / "none")
    finding = storage.checkpoints(Settings(checkpoint_root=str(mounted)))
    assert "whether it is shared is not known" in finding.found


def database(path: Path) -> Settings:
    return Settings(database=f"sqlite+aiosqlite:///{path}")


def test_a_database_that_is_not_there_yet(mounted: Path) -> None:
    """It is left to the manager to make it; a folder that is not there, nobody makes."""
    assert storage.database(database(mounted / "new.db")).found.endswith("not there yet; a manager makes it")
    assert not (mounted / "new.db").exists()
    finding = storage.database(database(mounted / "none" / "new.db"))
    assert (finding.status, finding.found) == (Status.PROBLEM, f"{mounted}/none: No such file or directory")


@pytest.mark.parametrize(
    ("schema", "status"),
    [
        (schema_known(None).newest, Status.OK),
        ("0001", Status.WARNING),
        ("9999", Status.PROBLEM),
        (None, Status.OK),
    ],
)
def test_which_schema_a_database_has(mounted: Path, schema: str | None, status: Status) -> None:
    """This version's, an older, a newer or none."""
    path = mounted / "manager.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)")
        if schema is not None:
            connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES ('{schema}')")
    connection.close()
    assert storage.database(database(path)).status is status


def test_sqlite_on_a_network_s_file_system(mounted: Path) -> None:
    """Its locks do not hold there."""
    path = mounted / "manager.db"
    newest = schema_known(None).newest
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)")
        connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES ('{newest}')")
    connection.close()
    mount(mounted, "nfs")
    finding = storage.database(database(path))
    assert finding.status is Status.PROBLEM
    assert finding.found.endswith("; on nfs")


def test_a_file_that_is_no_database(mounted: Path) -> None:
    """In SQLite's words."""
    path = mounted / "manager.db"
    path.write_text("moo " * 100)
    finding = storage.database(database(path))
    assert finding.status is Status.PROBLEM
    assert "not a database" in finding.found


def test_a_database_server_that_is_not_there() -> None:
    """Its password is not shown."""
    finding = storage.database(Settings(database="postgresql+asyncpg://u:geheim@127.0.0.1:1/x"))
    assert (finding.status, finding.to_do) == (Status.PROBLEM, "start the database, or correct --database")
    assert "geheim" not in finding.found
