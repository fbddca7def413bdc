"""The fenced file sink: every batch becomes a folder of its own, at once and once.

    PATH/sparkherd_batch=0_000000000012/        what readers see: whole batches only
        part-00000-….parquet
        _manifest                               who wrote it, and what is in it

Spark writes a batch beside PATH; then its folder is renamed into its place. That is atomic, and fails if the
batch is there. It also fails once a newer owner has claimed the task (`folder_ownership`). So no zombie
publishes after a claim, and no lock is ever held that a frozen process could keep.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from worker.sinks.base import Sink, Written
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.fence import FenceRow, Verdict, admits, judge, refusal
from worker.sinks.folder_ownership import FolderOwnership, sync
from worker.sinks.manifest import BATCH_COLUMN, MANIFEST, Manifest, batch_name, published, read_manifest
from worker.sinks.table import refuse_twins

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from definition.sinks.files import FilesOptions
    from worker.sinks.base import Batch, Field, Finding, SinkTask
    from worker.sinks.fence import Mark, Owner

_UNWRITABLE = {"void", "interval"}


class FilesSink(Sink):
    """Rows into Parquet or JSON files below one folder, which belongs to one task."""

    stages = True

    def __init__(self, options: FilesOptions, owner: Owner) -> None:
        self._format = options.format
        self._owner = owner
        self._folder = Path(options.path.removeprefix("file://").removeprefix("file:")).absolute()
        self._ownership = FolderOwnership(self._folder, owner)
        self._row = FenceRow(owner.token, owner.resets)

    @classmethod
    def open(cls, task: SinkTask) -> Self:
        """The folder is looked at when it is claimed."""
        return cls(task.options, task.owner)

    @classmethod
    def inspect(cls, task: SinkTask, fields: Sequence[Field]) -> Iterable[Finding]:
        """Files are new each time: there is nothing that columns could disagree with."""
        del task
        require_writable(fields)
        return ()

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    def claim(self) -> FenceRow:
        """Raise the fence, take the means to publish from all older owners, and see what is there."""
        with _as_sink_errors(self._folder):
            self._ownership.claim()
            self._row = self._with_last(FenceRow(self._owner.token, self._owner.resets))
        return self._row

    def newest(self) -> FenceRow | None:
        """The newest owner's token and resets."""
        with _as_sink_errors(self._folder):
            newest = self._ownership.newest()
            return None if newest is None else self._with_last(newest)

    def prepare(self, fields: Sequence[Field]) -> None:
        """See that files can hold the columns."""
        require_writable(fields)

    def write(self, batch: Batch) -> Written:
        """Stage the batch, then publish it, unless it is there."""
        with _as_sink_errors(self._folder):
            self._ownership.require_newest()
        if not admits(self._row, self._owner, batch.mark):
            return self._pass_over(batch)
        attempt = f"{batch.mark.batch_id}-{uuid4().hex}"
        written, whole = self._ownership.staging / attempt, self._ownership.outbox / attempt
        with self._losing_to_newer():
            rows = batch.save(self._format, f"file://{written}")
            with _as_sink_errors(self._folder):
                return self._publish(batch.mark, rows, written, whole)

    def close(self) -> None:
        """Nothing is open between two batches."""

    def _publish(self, mark: Mark, rows: int, written: Path, whole: Path) -> Written:
        """Put the files into a folder that no straggling attempt of Spark's knows of, and rename that."""
        manifest = Manifest.of(self._owner, mark, rows, self._row.rows + rows)
        _gather(written, whole, manifest)
        self._ownership.require_newest()
        place = self._folder / batch_name(self._owner.resets, mark.batch_id)
        try:
            whole.rename(place)
        except OSError:
            if not place.exists():
                raise
            return self._found(mark, place, whole)
        sync(self._folder)
        self._row = FenceRow(self._owner.token, self._owner.resets, mark, manifest.total)
        return Written(rows, manifest.total)

    def _found(self, mark: Mark, place: Path, whole: Path) -> Written:
        """The batch is there though it was not when the task was claimed, as far as this machine could see.

        A client of NFS may have been told an old list of what is there, or of its own rename that it failed.
        """
        self._ownership.require_newest()
        there = read_manifest(place)
        stored = replace(self._row, last=there.mark, rows=there.total)
        verdict = judge(stored, self._owner, mark)
        if verdict is not Verdict.DUPLICATE:
            raise refusal(verdict, self._owner, stored, mark)
        shutil.rmtree(whole, ignore_errors=True)
        self._row = stored
        return Written(0, there.total, duplicate=True)

    @contextmanager
    def _losing_to_newer(self) -> Iterator[None]:
        """Whatever fails because a newer owner took the staging away fails for that reason."""
        try:
            yield
        except Exception:
            with _as_sink_errors(self._folder):
                self._ownership.require_newest()
            raise

    def _pass_over(self, batch: Batch) -> Written:
        batch.discard()
        return Written(0, self._row.rows, duplicate=True)

    def _with_last(self, row: FenceRow) -> FenceRow:
        """An owner's row with the batch that was published last, and the rows up to it."""
        batches = published(self._folder)
        if not batches:
            return row
        (resets, _), newest = batches[-1]
        manifest = read_manifest(newest)
        last = manifest.mark if resets == row.resets else None
        return FenceRow(row.token, row.resets, last, manifest.total)


def require_writable(fields: Sequence[Field]) -> None:
    """Refuse columns that no file can hold.

    Raises:
        SchemaError: naming the first of them.
    """
    refuse_twins([field.name for field in fields])
    for field in fields:
        if field.type in _UNWRITABLE:
            remedy = f"select CAST({field.name} AS STRING) AS {field.name} instead"
            raise SchemaError(f"files cannot hold {field.name} of type {field.type}, {remedy}")
        if field.name.lower() == BATCH_COLUMN:
            raise SchemaError(f"the column {field.name} has the name of the sink's own: give it another")


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
        sync(file)  # a batch that Spark is told of must outlive the machine's power
    sync(whole)


@contextmanager
def _as_sink_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkError(f"the folder {folder} cannot be used: {error.strerror}: {error.filename}") from error
