"""The fenced file sink: every batch becomes a folder of its own, at once and once.

    PATH/sparkherd_batch=0_000000000012/        what readers see: whole batches only
        part-00000-….parquet
        _manifest                               who wrote it, and what is in it
    .PATH.sparkherd/                            beside it, so that no pattern over PATH ever matches it
        owner.json                              whose folder PATH is
        claims/00000000000000000007_0           the newest owner's token and number of resets
        staging/7/…                             what the owner with token 7 has not published yet

Spark writes a batch below `staging`; then its folder is renamed into its place. That is atomic, and fails
if the batch is there. It also fails once a newer owner has claimed the task, for the claim moves away the
staging of all older ones, and only then looks which batches are there. So no zombie publishes after a
claim, and no lock is ever held that a frozen process could keep.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from worker.sinks.base import Sink, Written
from worker.sinks.errors import FencedError, SchemaError, SinkError
from worker.sinks.fence import FenceRow, Verdict, fenced, judge, raised, refusal
from worker.sinks.manifest import BATCH_COLUMN, MANIFEST, Manifest, batch_name, published, read_manifest
from worker.sinks.table import refuse_twins

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from protocol.definition import FilesOptions
    from worker.sinks.base import Batch, Field
    from worker.sinks.marks import Mark, Owner

_UNWRITABLE = {"void", "interval"}
_EXISTS = {errno.EEXIST, errno.ENOTEMPTY}


class FilesSink(Sink):
    """Rows into Parquet or JSON files below one folder, which belongs to one task."""

    def __init__(self, options: FilesOptions, owner: Owner) -> None:
        self._format = options.format
        self._owner = owner
        self._folder = Path(options.path.removeprefix("file://").removeprefix("file:")).absolute()
        self._control = self._folder.with_name(f".{self._folder.name}.sparkherd")
        self._claims = self._control / "claims"
        self._staging = self._control / "staging"
        self._row = FenceRow(owner.token, owner.resets)

    def claim(self) -> FenceRow:
        """Raise the fence, take the means to publish from all older owners, and see what is there."""
        with _as_sink_errors(self._folder):
            self._make_folders()
            self._adopt()
            raised(self._newest_claim(), self._owner)
            (self._claims / f"{self._owner.token:020d}_{self._owner.resets}").touch()
            self._require_newest()
            self._disarm_older()
            self._row = self._with_last(FenceRow(self._owner.token, self._owner.resets))
        return self._row

    def newest(self) -> FenceRow | None:
        """The newest owner's token and resets."""
        with _as_sink_errors(self._folder):
            return self._with_last(self._newest_claim()) if self._claims.exists() else None

    def prepare(self, fields: Sequence[Field]) -> None:
        """See that files can hold the columns."""
        refuse_twins([field.name for field in fields])
        for field in fields:
            if field.type in _UNWRITABLE:
                remedy = f"select CAST({field.name} AS STRING) AS {field.name} instead"
                raise SchemaError(f"files cannot hold {field.name} of type {field.type}, {remedy}")
            if field.name.lower() == BATCH_COLUMN:
                raise SchemaError(f"the column {field.name} has the name of the sink's own: give it another")

    def write(self, batch: Batch) -> Written:
        """Stage the batch, then publish it, unless it is there."""
        with _as_sink_errors(self._folder):
            self._require_newest()
        verdict = judge(self._row, self._owner, batch.mark)
        if verdict is Verdict.DUPLICATE:
            return self._pass_over(batch)
        if verdict is not Verdict.WRITE:
            raise refusal(verdict, self._owner, self._row, batch.mark)
        mine = self._staging / str(self._owner.token)
        attempt = f"{batch.mark.batch_id}-{uuid4().hex}"
        with self._losing_to_newer():
            rows = batch.save(self._format, f"file://{mine / attempt}")
            with _as_sink_errors(self._folder):
                return self._publish(batch.mark, rows, mine / attempt, mine / f"whole-{attempt}")

    def close(self) -> None:
        """Nothing is open between two batches."""

    def _publish(self, mark: Mark, rows: int, written: Path, whole: Path) -> Written:
        """Put the files into a folder that no straggling attempt of Spark's knows of, and rename that."""
        manifest = Manifest.of(self._owner, mark, rows, self._row.rows + rows)
        _gather(written, whole, manifest)
        self._require_newest()
        whole.rename(self._folder / batch_name(self._owner.resets, mark.batch_id))
        _sync(self._folder)
        self._row = FenceRow(self._owner.token, self._owner.resets, mark, manifest.total)
        return Written(rows, manifest.total)

    @contextmanager
    def _losing_to_newer(self) -> Iterator[None]:
        """Whatever fails because a newer owner took the staging away fails for that reason."""
        try:
            yield
        except Exception:
            with _as_sink_errors(self._folder):
                self._require_newest()
            raise

    def _pass_over(self, batch: Batch) -> Written:
        batch.discard()
        return Written(0, self._row.rows, duplicate=True)

    def _make_folders(self) -> None:
        for folder in (self._folder, self._claims, self._staging):
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
        with suppress(FileExistsError):
            os.link(draft, self._control / "owner.json")
        draft.unlink()
        theirs: Any = json.loads((self._control / "owner.json").read_text())
        if theirs != mine:
            raise SinkError(
                f"the folder {self._folder} is that of task {theirs['task']} of group {theirs['group']}"
            )

    def _newest_claim(self) -> FenceRow:
        """The newest owner's token and resets; the lowest there can be before the first claim."""
        claims = (name.name.split("_") for name in self._claims.iterdir())
        token, resets = max(((int(token), int(resets)) for token, resets in claims), default=(0, 0))
        return FenceRow(token, resets)

    def _require_newest(self) -> None:
        newest = self._newest_claim()
        if (newest.token, newest.resets) != (self._owner.token, self._owner.resets):
            raise fenced(self._owner, newest)

    def _disarm_older(self) -> None:
        """Move their staging away, which ends what they could still do; then clear up."""
        for folder in list(self._staging.iterdir()):
            if not folder.name.isdecimal() or int(folder.name) <= self._owner.token:
                doomed = self._staging / f"doomed-{uuid4().hex}"
                with suppress(FileNotFoundError):
                    folder.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)
        for claim in self._claims.iterdir():
            if int(claim.name.split("_")[0]) < self._owner.token:
                claim.unlink(missing_ok=True)
        (self._staging / str(self._owner.token)).mkdir(exist_ok=True)

    def _with_last(self, row: FenceRow) -> FenceRow:
        """An owner's row with the batch that was published last, and the rows up to it."""
        batches = published(self._folder)
        if not batches:
            return row
        (resets, _), newest = batches[-1]
        manifest = read_manifest(newest)
        last = manifest.mark if resets == row.resets else None
        return FenceRow(row.token, row.resets, last, manifest.total)


def _gather(written: Path, whole: Path, manifest: Manifest) -> None:
    """Move what Spark has written into the folder `whole`, on disk; of an empty batch only the manifest."""
    whole.mkdir()
    for file in sorted(written.iterdir()):
        if manifest.rows and not file.name.startswith(("_", ".")):
            file.rename(whole / file.name)
    shutil.rmtree(written)
    names = sorted(file.name for file in whole.iterdir())
    if manifest.rows and not names:
        raise SinkError(f"the executors wrote their files elsewhere: they do not see {written.parent}")
    (whole / MANIFEST).write_text(manifest.text(names))
    for file in whole.iterdir():
        _sync(file)
    _sync(whole)


def _sync(path: Path) -> None:
    """Wait until it is on disk: a batch that Spark is told of must outlive the machine's power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _as_sink_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _EXISTS:
            raise FencedError(f"the batch is in {folder} already, written by somebody else") from None
        raise SinkError(f"the folder {folder} cannot be used: {error.strerror}: {error.filename}") from error
