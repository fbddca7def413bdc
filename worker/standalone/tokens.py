"""The fencing tokens of tasks that run without a manager: a file, held by one process at a time.

The manager's promise is kept without it: a token is durable before anybody hears of it, and every run has
higher ones than all runs before, and than any manager had (`protocol.fencing`). The file lies with the
checkpoints, because who goes on from a checkpoint is who must come after those that used it before.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Self

import msgspec

from protocol.errors import StartupError
from protocol.fencing import next_number
from protocol.messages.base import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

FILE = "~run.json"
"""Its name among the checkpoints of the group's tasks, none of which has a `~`."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    tokens: dict[str, Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]] = {}


class Tokens:
    """The last token of each task; used as a context manager, at whose end the file is free for others."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        """Take them.

        Args:
            path: is made, with its folders, when it is not there.
            now_ms: the wall clock, in milliseconds since 1970.

        Raises:
            StartupError: another process holds it, or it cannot be read or written.
        """
        self._path = path
        self._now_ms = now_ms
        with ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(path.with_name(path.name + ".lock").open("a+"))
                _hold(lock, path.parent)
                self._tokens = _read(path)
            except OSError as error:
                raise _unusable(path, error) from None
            self._lock = stack.pop_all()

    def __enter__(self) -> Self:
        """It is held from the start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let others have it."""
        self._lock.close()

    def take(self, seen: Mapping[str, int]) -> dict[str, int]:
        """A new token for each task, higher than all it ever had, and than the one that was seen elsewhere.

        Args:
            seen: tasks, each with the highest token that its sink knows of.

        Raises:
            StartupError: they could not be made durable; none is taken.
        """
        now_ms = self._now_ms()
        last = {task: max(self._tokens.get(task, 0), token) for task, token in seen.items()}
        taken = {task: next_number(token, now_ms) for task, token in last.items()}
        tokens = self._tokens | taken
        try:
            _write(self._path, msgspec.json.encode(_Document(tokens)))
        except OSError as error:
            raise _unusable(self._path, error) from None
        self._tokens = tokens
        return taken


def place_of(checkpoint_root: str, group: str) -> Path:
    """Where a group's tokens are: with its checkpoints, or here if those are in no file system."""
    root = checkpoint_root.removeprefix("file://")
    if "://" in root:
        return Path(f"sparkherd-run-{group}.json")
    return Path(root) / group / FILE


def _hold(lock: IO[str], folder: Path) -> None:
    """Take the lock; the kernel lets go of it when the process ends, however it does."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        raise StartupError(
            f"another `sparkherd run` (process {holder}) has the tasks of {folder}; stop it first"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _unusable(path: Path, error: OSError) -> StartupError:
    return StartupError(f"{path} cannot be used: {error.strerror or error}")


def _read(path: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Document).tokens
    except FileNotFoundError:
        return {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StartupError(
            f"{path} is damaged; without it the fences in the sinks still count, so it may be deleted"
        ) from None


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing, and on disk when this returns."""
    draft = path.with_name(path.name + ".new")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
