"""What a JVM is started with, in files: everybody on the machine can read the command line of a process.

`spark-submit` takes Spark's settings from a properties file, and `java` its own options from an argument
file. Nobody else can read these, and they are gone when Spark is up. What is left in the command line is what
Spark's launcher makes an argument of: `spark.driver.memory` and the class path.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from configuration.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

EXTRA_OPTIONS = "spark.driver.extraJavaOptions"
DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
EXECUTORS_DEFAULT_OPTIONS = "spark.executor.defaultJavaOptions"
"""What Spark puts before `spark.executor.extraJavaOptions`."""
_AVRO = "-Dorg.apache.avro.limits"
AVRO_LIMITS = (
    f"{_AVRO}.bytes.maxLength=100000000",
    f"{_AVRO}.string.maxLength=100000000",
    f"{_AVRO}.collectionItems.maxLength=10000000",
)
"""Avro's reader makes room for as much as a value says it has, before it sees any of it: five bytes could ask
for two gigabytes, and end the JVM. What is longer is a value that Avro cannot read."""
ALWAYS = ("-XX:+ExitOnOutOfMemoryError", *AVRO_LIMITS)
"""A JVM that has run out of memory lives on with threads missing: nobody knows what still works. The user's
options come later, and so have the last word."""
_LOGGING, _OPTIONS, _SETTINGS = "log4j2.properties", "java-options", "spark.conf"
_FOLDER_PREFIX = "sparkherd-jvm-"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Where PySpark looks for what else to give to `spark-submit`."""
_SPECIAL = re.compile(r"[\\:=#!\s]|[^\x20-\x7e]")


@contextmanager
def submission(conf: Mapping[str, str], log4j: str) -> Iterator[dict[str, str]]:
    """Have the JVM that is started meanwhile get `conf`, and write its log by the configuration `log4j`.

    Args:
        conf: Spark's settings.
        log4j: the text of a properties file.

    Yields:
        The environment that PySpark is to start it in.
    """
    with _private_folder((_LOGGING, _OPTIONS, _SETTINGS)) as folder:
        logging = _write(folder, _LOGGING, log4j)
        options = _write(folder, _OPTIONS, java_options(conf, logging))
        properties = {key: value for key, value in conf.items() if key != DEFAULT_OPTIONS}
        properties |= {EXTRA_OPTIONS: f"@{options}", EXECUTORS_DEFAULT_OPTIONS: executor_options(conf)}
        settings = _write(folder, _SETTINGS, as_properties(properties))
        yield _environment(settings)


@contextmanager
def environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Let the process's environment be `changed` alone for as long as it takes to start a process."""
    before = dict(os.environ)
    _replace(changed)
    try:
        yield
    finally:
        _replace(before)


@contextmanager
def _private_folder(names: Collection[str]) -> Iterator[str]:
    """A folder that only the user can read, for as long as the context lasts; its like of dead processes go.

    A process that is killed clears nothing up. So a folder is locked while its process lives, and who comes
    next removes those that nobody holds.

    Args:
        names: the files that may be put into it; a folder with others in it is not taken for a left one.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        _remove_if_left(left, names)
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX) as folder, _opened(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder


def _remove_if_left(folder: Path, names: Collection[str]) -> None:
    """An empty one may be about to be locked, and holds no secrets."""
    with suppress(OSError), _opened(folder) as descriptor:  # another user's, held, or gone meanwhile
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = {each.name for each in folder.iterdir()}
        if there and there <= set(names):
            for name in there:
                os.unlink(name, dir_fd=descriptor)
            folder.rmdir()


@contextmanager
def _opened(folder: str | Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def java_options(conf: Mapping[str, str], log4j: Path) -> str:
    """An argument file for `java`, an option a line: our own, then those of the user's settings."""
    given = f"{conf.get(DEFAULT_OPTIONS, '')} {conf.get(EXTRA_OPTIONS, '')}"
    options = [*ALWAYS, f"-Dlog4j2.configurationFile={log4j.as_uri()}", *shlex.split(given)]
    return "".join(f"{_quoted(option)}\n" for option in options)


def executor_options(conf: Mapping[str, str]) -> str:
    """What the JVMs of executors are started with, before the user's `spark.executor.extraJavaOptions`.

    They end by themselves when they are out of memory: Spark starts others.
    """
    return " ".join((*AVRO_LIMITS, conf.get(EXECUTORS_DEFAULT_OPTIONS, ""))).rstrip()


def as_properties(settings: Mapping[str, str]) -> str:
    """A file of Java's `Properties` in ASCII."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _environment(settings: Path) -> dict[str, str]:
    """The environment without the worker's own settings: they are not for Spark, nor for tasks' code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    arguments = f"--load-spark-defaults --properties-file {shlex.quote(str(settings))}"
    return {**kept, _ARGUMENTS: f"{arguments} {kept.get(_ARGUMENTS, 'pyspark-shell')}"}


def _replace(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)


def _write(folder: str, name: str, text: str) -> Path:
    path = Path(folder, name)
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: "".join(f"\\u{each:04x}" for each in _utf16(found[0])), text)


def _utf16(text: str) -> Iterator[int]:
    encoded = text.encode("utf-16-be")
    return (int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2))
