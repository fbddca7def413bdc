"""Is there a Java that Spark runs on? Asked first, because Spark's own answer is hard to read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from worker.query_engine import QueryError

OLDEST = 17
REMEDY = (
    f"install Java {OLDEST} or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
    " or point JAVA_HOME to it"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_TIMEOUT_S = 30


def require_java() -> None:
    """See that Spark will find a Java that is new enough.

    Raises:
        QueryError: there is none; says how to get one.
    """
    java = find_java()
    if java is None:
        raise QueryError(f"Spark needs Java and there is none on the PATH: {REMEDY}")
    version = _version_of(java)
    if version is None:
        raise QueryError(f"Spark needs Java and {java} does not run: {REMEDY}")
    if version < OLDEST:
        raise QueryError(f"Spark needs Java {OLDEST} or newer and {java} is Java {version}: {REMEDY}")


def parse_version(answer: str) -> int | None:
    """The major version in what `java -version` prints: 17 of "17.0.15", 8 of "1.8.0_292"."""
    match = _VERSION.search(answer)
    return int(match[1]) if match else None


def find_java() -> str | None:
    """The one Spark's launcher takes: JAVA_HOME before the PATH."""
    if home := os.environ.get("JAVA_HOME"):
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _version_of(java: str) -> int | None:
    command = [java, "-version"]
    try:
        answer = subprocess.run(  # noqa: S603 - the Java that the user has chosen
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stderr)
