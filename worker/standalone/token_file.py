"""The fencing tokens of tasks that run without a manager: a file, held by one run and its JVM at a time.

The manager's promise is kept without it: a token is durable before anybody hears of it, and every run has
higher ones than all runs before, and than any manager had (`protocol.fencing`). The file lies with the
checkpoints, because who goes on from a checkpoint is who must come after those that used it before.

What writes is the JVM, and a frozen one outlives its run. So it inherits the descriptor of the lock, which
the kernel keeps locked until the last process that has it is gone (flock(2)).
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, Self

import msgspec
import structlog

from protocol.errors import StartupError
from protocol.fencing import next_number
from protocol.messages.base import MAX_INT
from worker.spark.settings import local_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

log = structlog.get_logger(__name__)

FILE = "~run.json"
"""Its name among the checkpoints of the group's tasks, none of which has a `~`."""
ORPHAN_S: Final = 30.0
"""How long the JVM of a run that was killed may take to notice and end; ten seconds on a busy machine."""
_LOOK_EVERY_S: Final = 0.25


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    tokens: dict[str, Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]] = {}


class TokenFile:
    """The last token of each task; used as a context manager, at whose end the file is free for others.

    It is once no process that has inherited `descriptor` is left, either.
    """

    def __init__(
        self, path: Path, now_ms: Callable[[], int], pause: Callable[[float], object] = time.sleep
    ) -> None:
        """Take them; waits up to `ORPHAN_S` for the JVM of a run that was killed.

        Args:
            path: is made, with its folders, when it is not there.
            now_ms: the wall clock, in milliseconds since 1970.
            pause: waits so many seconds.

        Raises:
            StartupError: another run or its JVM holds it, or it cannot be read or written.
        """
        self._path = path
        self._now_ms = now_ms
        with ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(path.with_name(path.name + ".lock").open("a+"))
                _hold(lock, path.parent, pause)
                self._tokens = _read(path)
            except OSError as error:
                raise _unusable(path, error) from None
            self._lock = stack.pop_all()
        self.descriptor = lock.fileno()

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
    """Where a group's tokens are: with its checkpoints, or here if those are in no folder of this machine."""
    root = local_folder(checkpoint_root)
    return Path(f"sparkherd-run-{group}.json") if root is None else root / group / FILE


def _hold(lock: IO[str], folder: Path, pause: Callable[[float], object]) -> None:
    """Take the lock; the kernel lets go of it when all that have it end, however they do.

    A run that was killed leaves a JVM that is about to end, so a service that is started again at once waits.
    """
    waited_s = 0.0
    while not _is_taken(lock):
        holder = _holder(lock)
        if _is_here(holder):
            raise StartupError(
                f"another `sparkherd run` (process {holder}) has the tasks of {folder}; stop it first"
            )
        if waited_s >= ORPHAN_S:
            raise _orphaned(lock, holder, folder)
        if not waited_s:
            log.info("waiting for the JVM of a run that was killed", run=holder, seconds=ORPHAN_S)
        pause(_LOOK_EVERY_S)
        waited_s += _LOOK_EVERY_S
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _is_taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: IO[str]) -> int | None:
    """The process that took the lock last; none while it has not said so yet."""
    lock.seek(0)
    said = lock.read().strip()
    return int(said) if said.isdecimal() else None


def _is_here(process: int | None) -> bool:
    """Whether it lives, as far as can be seen from here; a container sees only its own processes."""
    if process is None:
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _orphaned(lock: IO[str], holder: int | None, folder: Path) -> StartupError:
    return StartupError(
        f"another `sparkherd run` has the tasks of {folder}: its process {holder or 'unknown'} is gone, and"
        f" its JVM is not, or it is in another container; end that first (`fuser {lock.name}` names it)"
    )


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
