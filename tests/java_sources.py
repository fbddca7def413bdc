"""Java of the tests' own, compiled by the compiler that Spark brings: a JRE has none."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"
SPARK_JARS: Final = Path(pyspark.__file__).parent / "jars"


def compiled(source: Path, jars: Sequence[Path], classes: Path) -> Path:
    """The folder `classes`, with what `source` compiles to beside these jars and Spark's."""
    classes.mkdir(parents=True)
    needed = ":".join(map(str, [*sorted(SPARK_JARS.glob("*.jar")), *jars]))
    command = ["java", "-cp", needed, _COMPILER, "-classpath", needed, "-d", str(classes), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert any(classes.rglob("*.class")), done.stdout + done.stderr
    return classes
