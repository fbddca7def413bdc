from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from worker.spark.classic.submission import (
    AVRO_LIMITS,
    as_properties,
    environment,
    executor_options,
    java_options,
    submission,
)


def files_of(environ: dict[str, str]) -> tuple[Path, Path]:
    """The settings' file and the one of the options of `java`."""
    settings = Path(environ["PYSPARK_SUBMIT_ARGS"].split()[2])
    (line,) = [each for each in settings.read_text().splitlines() if "driver.extraJavaOptions" in each]
    return settings, Path(line.partition("=")[2].removeprefix("@"))


def test_nobody_else_can_read_the_files_and_they_go() -> None:
    """Each start has a folder of its own, so that two that start at once do not meet."""
    with submission({"spark.a": "b"}, "log") as one, submission({}, "log") as two:
        folder = files_of(one)[0].parent
        assert folder != files_of(two)[0].parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
        assert "spark.a=b\n" in files_of(one)[0].read_text()
        assert (folder / "log4j2.properties").read_text() == "log"
    assert not folder.exists()


KILLED = """
import os, signal
from worker.spark.classic.submission import submission
with submission({"spark.a": "hush"}, ""):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_worker_has_left_goes_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of starts that go on stay, and so does what others have put under such a name."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert "hush" in (left / "spark.conf").read_text()
    other = Path(mkdtemp(prefix=left.name[:14]), "theirs")
    other.touch()
    with submission({}, "") as one:
        assert not left.exists()
        with submission({}, "") as two:
            assert files_of(one)[0].exists()
            assert files_of(two)[0].exists()
    assert list(tmp_path.iterdir()) == [other.parent]
    assert other.exists()


def test_what_the_user_gives_to_spark_submit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind our own, where it has the last word; the worker's own settings are not for Spark."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--files a.txt pyspark-shell")
    monkeypatch.setenv("SPARKHERD_SPARK_CONF", "spark.a=hush")
    with submission({}, "") as environ:
        assert environ["PYSPARK_SUBMIT_ARGS"].startswith("--load-spark-defaults --properties-file /")
        assert environ["PYSPARK_SUBMIT_ARGS"].endswith("/spark.conf --files a.txt pyspark-shell")
        assert "SPARKHERD_SPARK_CONF" not in environ
        assert environ["PATH"] == os.environ["PATH"]


def test_the_environment_of_the_worker_comes_back() -> None:
    """As it was, whatever happens."""
    before = dict(os.environ)
    with environment({"ONLY": "this"}):
        assert dict(os.environ) == {"ONLY": "this"}
    assert dict(os.environ) == before
    with pytest.raises(OSError, match="no such program"), environment({}):
        raise OSError("no such program")
    assert dict(os.environ) == before


def test_the_user_s_java_options_have_the_last_word(tmp_path: Path) -> None:
    """A JVM that is out of memory ends, unless they say otherwise."""
    conf = {"spark.driver.extraJavaOptions": "-XX:-ExitOnOutOfMemoryError -Da='b c'"}
    conf["spark.driver.defaultJavaOptions"] = '-Dpath=C:\\\\x "-Dq=\\"r\\""'
    assert java_options(conf, tmp_path).splitlines() == [
        '"-XX:+ExitOnOutOfMemoryError"',
        *(f'"{limit}"' for limit in AVRO_LIMITS),
        f'"-Dlog4j2.configurationFile={tmp_path.as_uri()}"',
        '"-Dpath=C:\\\\x"',
        '"-Dq=\\"r\\""',
        '"-XX:-ExitOnOutOfMemoryError"',
        '"-Da=b c"',
    ]


def test_executors_have_avro_s_limits_unless_the_user_says_otherwise() -> None:
    """Spark puts these before the user's `spark.executor.extraJavaOptions`; of two, Java takes the last."""
    extra = {"spark.executor.extraJavaOptions": "-Dorg.apache.avro.limits.bytes.maxLength=5"}
    assert executor_options(extra) == " ".join(AVRO_LIMITS)
    default = {"spark.executor.defaultJavaOptions": "-Da=b"}
    assert executor_options(default) == f"{' '.join(AVRO_LIMITS)} -Da=b"
    with submission(extra, "") as environ:
        settings = files_of(environ)[0].read_text()
    assert "spark.executor.defaultJavaOptions=-Dorg.apache.avro.limits.bytes.maxLength" in settings
    assert "spark.executor.extraJavaOptions=-Dorg.apache.avro.limits.bytes.maxLength\\u003d5" in settings


def test_any_text_is_a_property() -> None:
    """As Java's `Properties` reads it back."""
    told = as_properties({"a b": " =:#!\\\n\u00e4\U0001f411"})
    assert told == "a\\u0020b=\\u0020\\u003d\\u003a\\u0023\\u0021\\u005c\\u000a\\u00e4\\ud83d\\udc11\n"
