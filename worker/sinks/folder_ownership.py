"""How the owners of a file sink's folder take turns: at most the newest can publish, whatever the others do.

    .PATH.sparkherd/                            beside PATH, so that no pattern over PATH ever matches it
        owner.json                              whose folder PATH is
        claims/00000000000000000007_0           the newest owner's token and number of resets
        staging/7/…                             what Spark writes for the owner with token 7
        staging/7-9f2c…/…                       its outbox: whole batches, each about to be renamed into PATH

Only what is in an outbox can be published. An owner makes its own before it claims, and nobody makes one of
that name again: whoever claims after it takes all that is in there out, by the very names that the older
owner would rename, and then removes it. From then on the server of the file system itself refuses the older
owner, even if that knows the folder by a handle and the claims from memory, as a client of NFS does. That
removal makes the claim; only after it may the new owner look which batches there are.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from worker.sinks.errors import FencedError, SinkError
from worker.sinks.fence import FenceRow, fenced, raised

if TYPE_CHECKING:
    from pathlib import Path

    from worker.sinks.fence import Owner

_CLAIM = re.compile(r"(\d+)_(\d+)\Z")
_OUTBOX = re.compile(r"(?P<token>\d+)-[0-9a-f]+\Z")
_DOOMED = "doomed-"
_NOT_EMPTY = {errno.EEXIST, errno.ENOTEMPTY}
_TRIES = 100
"""At a folder that an older owner fills while it is emptied; each of its batches puts one thing there."""


class FolderOwnership:
    """One owner's view of the folder beside a sink's."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        self._folder = folder
        self._owner = owner
        self._control = folder.with_name(f".{folder.name}.sparkherd")
        self._claims = self._control / "claims"
        self._all_staging = self._control / "staging"
        self.staging = self._all_staging / str(owner.token)
        """For Spark, which makes it and all below it itself, whoever owns the task by then."""
        self.outbox = self._all_staging / f"{owner.token}-none"
        """For what is to be renamed into the sink's folder; there from the claim until the next one."""

    def claim(self) -> None:
        """Be the newest owner.

        Raises:
            FencedError: a newer one was here before.
            SinkError: the folder is another task's, or an older owner cannot be stopped just now.
        """
        self._make_folders()
        self._adopt()
        raised(self.newest() or FenceRow(0), self._owner)
        self.outbox = self._all_staging / f"{self._owner.token}-{uuid4().hex}"
        self.outbox.mkdir()
        (self._claims / f"{self._owner.token:020d}_{self._owner.resets}").touch()
        try:
            self.require_newest()
        except FencedError:
            self._close(self.outbox)
            raise
        self._end_older()

    def newest(self) -> FenceRow | None:
        """The newest owner's token and resets; None before the first claim."""
        if not self._claims.exists():
            return None
        return max((row for _, row in self._all_claims()), key=_age, default=FenceRow(0))

    def require_newest(self) -> None:
        """Raise `FencedError` if another owner has claimed the task, as far as this machine knows."""
        newest = self.newest() or FenceRow(0)
        if (newest.token, newest.resets) != (self._owner.token, self._owner.resets):
            raise fenced(self._owner, newest)

    def _make_folders(self) -> None:
        for folder in (self._folder, self._claims, self._all_staging):
            folder.mkdir(parents=True, exist_ok=True)
        if self._folder.stat().st_dev != self._control.stat().st_dev:
            raise SinkError(
                f"{self._folder} is a mount point: name a folder inside it, for a file system of its own"
            )

    def _adopt(self) -> None:
        """Make the folder the task's, unless it is another's: two would number their batches alike."""
        mine = {"group": self._owner.group, "task": self._owner.task}
        draft = self._control / f"owner-{uuid4().hex}"
        draft.write_text(json.dumps(mine))
        sync(draft)
        with suppress(FileExistsError):
            os.link(draft, self._control / "owner.json")
        draft.unlink()
        group, task = self._adopter(self._control / "owner.json")
        if {"group": group, "task": task} != mine:
            raise SinkError(f"the folder {self._folder} is that of task {task} of group {group}")

    def _adopter(self, file: Path) -> tuple[str, str]:
        """The group and the task that the folder belongs to."""
        try:
            told: Any = json.loads(file.read_text())
            return told["group"], told["task"]
        except (ValueError, KeyError, TypeError):
            raise SinkError(
                f"{file} does not say whose folder {self._folder} is: remove it if it is this task's"
            ) from None

    def _all_claims(self) -> list[tuple[Path, FenceRow]]:
        """Other things among them are let be: a client of NFS keeps removed files there for a while."""
        found = ((claim, _CLAIM.match(claim.name)) for claim in self._claims.iterdir())
        return [(claim, FenceRow(int(match[1]), int(match[2]))) for claim, match in found if match]

    def _end_older(self) -> None:
        """Close the outboxes of all older owners, and of this token's before; then clear up."""
        for folder in list(self._all_staging.iterdir()):
            outbox = _OUTBOX.match(folder.name)
            if outbox is None and not self._is_newer(folder.name):
                self._doom(folder)
            elif outbox is not None and folder != self.outbox and not self._is_newer(outbox["token"]):
                self._close(folder)
        for folder in self._all_staging.glob(f"{_DOOMED}*"):
            shutil.rmtree(folder, ignore_errors=True)
        for claim, row in self._all_claims():
            if row.token < self._owner.token:
                claim.unlink(missing_ok=True)

    def _is_newer(self, token: str) -> bool:
        """Whether it is that of an owner that is about to claim; versions before had other names, too."""
        return token.isdecimal() and int(token) > self._owner.token

    def _close(self, outbox: Path) -> None:
        """What is in it is taken out name by name; that it could be removed shows that nothing is."""
        for _ in range(_TRIES):
            try:
                for whole in list(outbox.iterdir()):
                    self._doom(whole)
                outbox.rmdir()
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in _NOT_EMPTY:
                    raise
            else:
                return
        raise SinkError(f"a former owner of {self._owner} still writes to {outbox}: it has to be stopped")

    def _doom(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            folder.rename(self._all_staging / f"{_DOOMED}{uuid4().hex}")


def _age(row: FenceRow) -> tuple[int, int]:
    """What grows from owner to owner."""
    return row.token, row.resets


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk and outlive the machine's power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
