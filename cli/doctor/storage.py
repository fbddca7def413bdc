"""Where workers keep checkpoints, and managers everything: is it there, writable, and of the right kind?"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.doctor.finding import ok, problem, skipped, warning
from manager.storage.base import StorageError
from manager.storage.database import database_at, shown
from manager.storage.migrate import schema_of
from worker.spark.settings import local_folder

if TYPE_CHECKING:
    from cli.doctor.finding import Finding, Settings
    from manager.storage.database import Database

MOUNTS: Final = Path("/proc/self/mountinfo")
NETWORKED: Final = ("nfs", "cifs", "smb", "ceph", "lustre", "gluster", "gpfs", "beegfs", "afs", "ocfs", "gfs")
"""How the types of file systems begin that several machines may see."""
FLEETING: Final = ("tmpfs", "ramfs")
OBJECT_STORES: Final = ("s3", "s3a", "s3n", "gs", "wasb", "wasbs", "oss", "cosn", "swift")


def checkpoints(settings: Settings) -> Finding:
    """Whether Spark can keep its logs under the checkpoint root, and other machines see it."""
    root = settings.checkpoint_root
    folder = local_folder(root)
    if folder is None:
        return _remote(root)
    folder = folder.absolute()
    try:
        at = _try_out(folder)
    except OSError as error:
        return problem(
            f"{folder}: {error.strerror or error}",
            "make a folder that the worker's user may write to, and name it with --checkpoint-root",
        )
    return _judged(folder, at)


def _remote(root: str) -> Finding:
    scheme = root.partition(":")[0].lower()
    if scheme in OBJECT_STORES:
        return warning(
            f"{root}: an object store renames in more than one step; it was not tried from here",
            "read docs/deploying.md, or take a shared file system",
        )
    return skipped(f"{root}: only Spark reaches it")


def _judged(folder: Path, at: Path) -> Finding:
    kind = file_system(at, MOUNTS)
    found = f"{folder}: " + ("" if at == folder else "will be made, ") + "writable, renames whole"
    if kind is None:
        return warning(f"{found}; whether it is shared is not known", "make sure all workers see it")
    if kind in FLEETING:
        return warning(f"{found}; {kind} forgets all with the next start", "take a folder on a disk")
    if kind.startswith((*NETWORKED, "fuse.")):
        return ok(f"{found}, shared ({kind})")
    return warning(
        f"{found}; this machine's own ({kind})",
        "right for workers of one machine; those of several need a shared folder",
    )


def _try_out(folder: Path) -> Path:
    """Do what Spark's logs rely on, in `folder` or the nearest one above it that is there; returns which.

    Raises:
        OSError: something of it did not come about.
    """
    at = next(each for each in (folder, *folder.parents) if each.exists())
    with tempfile.TemporaryDirectory(prefix=".sparkherd-doctor-", dir=at) as name:
        written, renamed = Path(name, "written"), Path(name, "renamed")
        with written.open("x") as file:
            file.write("whole")
            file.flush()
            os.fsync(file.fileno())
        renamed.write_text("older")
        written.rename(renamed)
        if written.exists() or renamed.read_text() != "whole":
            raise OSError(f"renaming a file over another one in {at} left something else behind")
        _refuse_second(renamed)
    return at


def _refuse_second(path: Path) -> None:
    """A file that is there must not be made anew: so Spark keeps two writers of one log apart."""
    try:
        path.open("x").close()
    except FileExistsError:
        return
    raise OSError(f"{path.parent} lets a file be made twice")


def file_system(path: Path, mounts: Path) -> str | None:
    """The type of the file system that `path` is on, as `ext4`; None where the system does not tell."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    around = {str(each) for each in (path.resolve(), *path.resolve().parents)}
    mounted = [(fields[4], fields[fields.index("-") + 1]) for fields in lines if fields[4] in around]
    return max(mounted, key=lambda mount: len(mount[0]))[1] if mounted else None


def database(settings: Settings) -> Finding:
    """Whether a manager on this machine could use its database, and which schema that has."""
    opened = database_at(settings.database)
    path = opened.path
    if path is None or path.exists():
        return asyncio.run(_schema(opened))
    try:
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            return ok(f"{path.absolute()}: not there yet; a manager makes it")
    except OSError as error:
        return problem(
            f"{path.absolute().parent}: {error.strerror}",
            "make a folder that the manager's user may write to, and name a file in it with --database",
        )


async def _schema(opened: Database) -> Finding:
    place = shown(opened)
    try:
        schema = await opened.transact(schema_of)
    except StorageError as error:
        return problem(f"{place}: {error}", "start the database, or correct --database")
    finally:
        await opened.close()
    if schema.is_newer:
        return problem(
            f"{place}: schema {schema.present} of a newer sparkherd",
            f"upgrade this one, which knows {schema.newest}",
        )
    if schema.present is None:
        return ok(f"{place}: empty; the first manager makes its tables")
    if not schema.is_current:
        upgrade = f"`sparkherd db upgrade`, or the start of a manager, makes it {schema.newest}"
        return warning(f"{place}: schema {schema.present}", upgrade)
    return _kind(opened.path, f"{place}: schema {schema.present}, up to date")


def _kind(path: Path | None, found: str) -> Finding:
    """SQLite's locks do not reach from one machine to another."""
    kind = None if path is None else file_system(path.absolute(), MOUNTS)
    if kind is not None and kind.startswith(NETWORKED):
        return problem(f"{found}; on {kind}", "keep SQLite on a disk of the machine, or use PostgreSQL")
    return ok(found)
