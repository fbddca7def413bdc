"""What references to secrets stand for on this worker, and which it lets a definition use.

Whoever may create tasks must not be able to read what the worker's process can. So nothing may be used that
its settings do not allow: variables by their prefixes, files by the folder they are in.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from configuration.settings import PREFIX
from definition import references
from telemetry.secrets import SECRETS
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from definition.document import Definition
    from definition.quarantine import Quarantine
    from definition.references import Reference
    from definition.sink import Sink
    from definition.source import Payload, Source

Value = TypeVar("Value")

MAX_BYTES: Final = 65_536
"""Of a file with a secret."""


class SecretError(QueryError):
    """A reference has nothing to stand for; starting the task again would not help."""

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(f"{path}: {fault}", permanent=True, path=path)


@dataclass(frozen=True, slots=True)
class Secrets:
    """Looks references up.

    `prefixes` are those of the variables in `environ` that may be used, `folder` is where files may be.
    """

    prefixes: Sequence[str] = ()
    folder: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def resolve(self, definition: Definition) -> Resolved:
        """The definition with what its references stand for. Those values are hidden from logs from then on.

        Raises:
            SecretError: one cannot be used here, or its value is not what its place takes; names that place.
        """
        search = _Search(self)
        resolved = msgspec.structs.replace(
            definition.with_sources(lambda view, each: _filled(each, definition.path_of(view), search)),
            sink=None if definition.sink is None else self._resolve_sink(definition.sink, search),
            options=search.fill(definition.options, "options"),
            spark_conf=search.fill(definition.spark_conf, "spark_conf"),
            quarantine=self._resolve_quarantine(definition.quarantine, search),
        )
        return Resolved(resolved, tuple(search.found))

    def resolve_sink(self, sink: Sink) -> Sink:
        """A sink with its references resolved, for which nothing else of the definition is needed."""
        return self._resolve_sink(sink, _Search(self))

    def _resolve_sink(self, sink: Sink, search: _Search) -> Sink:
        options = search.fill(sink.options, "sink.options")
        resolved = msgspec.structs.replace(sink, options=options)
        for problem in resolved.option_faults():
            raise SecretError(f"sink.{problem.path}", f"{problem.message} (as its reference stands)")
        return resolved

    def _resolve_quarantine(self, place: Quarantine | None, search: _Search) -> Quarantine | None:
        if place is None:
            return None
        resolved = msgspec.structs.replace(place, options=search.fill(place.options, "quarantine.options"))
        for problem in () if resolved.sink is None else resolved.sink.option_faults():
            raise SecretError(f"quarantine.{problem.path}", f"{problem.message} (as its reference stands)")
        return resolved

    def value_of(self, reference: Reference, path: str) -> str:
        """What `reference`, in the value at `path`, stands for; raises `SecretError`."""
        value = self._variable(reference, path) if reference.kind == "env" else self._file(reference, path)
        if not value:
            raise SecretError(path, f"{reference} is empty on this worker")
        return value

    def _variable(self, reference: Reference, path: str) -> str:
        name = reference.name
        if name.startswith(PREFIX):
            raise SecretError(path, f"{reference} is a setting of the worker, which no task may use")
        if not any(name.startswith(prefix) for prefix in self.prefixes):
            raise SecretError(
                path, f"{reference} may not be used on this worker; start it with --allow-secret-env {name}"
            )
        if name not in self.environ:
            raise SecretError(path, f"{reference} is not set on this worker")
        return self.environ[name]

    def _file(self, reference: Reference, path: str) -> str:
        if self.folder is None:
            raise SecretError(
                path, f"{reference} may not be used on this worker; start it with --secrets-dir"
            )
        try:
            folder = Path(self.folder).resolve(strict=True)
            file = (folder / reference.name).resolve(strict=True)
            if not file.is_relative_to(folder):
                raise SecretError(path, f"{reference} is outside of the worker's --secrets-dir")
            return _read(file).removesuffix("\n").removesuffix("\r")
        except (OSError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or "its links lead in a circle"
            raise SecretError(path, f"{reference} cannot be read on this worker: {why}") from None
        except ValueError:
            raise SecretError(path, f"{reference} is no text in UTF-8") from None


@dataclass(frozen=True, slots=True)
class Resolved:
    """A definition as it is run, and the secrets that are in it."""

    definition: Definition
    values: tuple[str, ...]


class _Search:
    """One definition's."""

    def __init__(self, secrets: Secrets) -> None:
        self.found: list[str] = []
        self._secrets = secrets

    def fill(self, value: Value, path: str) -> Value:
        filled: Value = references.resolve(value, path, self._look_up)
        return filled

    def _look_up(self, reference: Reference, path: str) -> str:
        value = self._secrets.value_of(reference, path)
        SECRETS.learn(value)
        self.found.append(value)
        return value


def _filled(source: Source, path: str, search: _Search) -> Source:
    """A source with its references resolved, those of what takes its bytes apart included."""

    def payload(given: Payload | None, name: str) -> Payload | None:
        if given is None:
            return None
        options = search.fill(given.options, f"{path}.{name}.options")
        return msgspec.structs.replace(given, options=options)

    return msgspec.structs.replace(
        source,
        options=search.fill(source.options, f"{path}.options"),
        key=payload(source.key, "key"),
        value=payload(source.value, "value"),
    )


def _read(file: Path) -> str:
    """The text of a regular file; a pipe or a device could keep the worker waiting for ever."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no file")
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(0, f"it has more than {MAX_BYTES} bytes")
    return content.decode()
