"""The tokens of runs without a manager: they only grow, and one process has them at a time."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import StartupError
from worker.standalone.token_file import ORPHAN_S, TokenFile, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def long_ago() -> int:
    """A clock so far behind that tokens are counted."""
    return 0


def test_tokens_are_no_lower_than_the_second_they_are_taken_in(tmp_path: Path) -> None:
    """A run finds no file where another machine had one, and sinks that cannot be asked: it is let in."""
    with TokenFile(tmp_path / "here" / "t.json", lambda: 1_800_000_000_999) as tokens:
        assert tokens.take({"a": 0, "b": 1_800_000_000}) == {"a": 1_800_000_000, "b": 1_800_000_001}
    with TokenFile(tmp_path / "there" / "t.json", lambda: 1_800_000_001_000) as tokens:
        assert tokens.take({"a": 0}) == {"a": 1_800_000_001}


def test_tokens_grow_from_run_to_run(tmp_path: Path) -> None:
    """Each run's are higher than those of all before it, whatever tasks the runs between had."""
    path = tmp_path / "g" / "~run.json"
    with TokenFile(path, long_ago) as first:
        assert first.take({"a": 0, "b": 0}) == {"a": 1, "b": 1}
    with TokenFile(path, long_ago) as second:
        assert second.take({"b": 0}) == {"b": 2}
    with TokenFile(path, long_ago) as third:
        assert third.take({"a": 0, "b": 0}) == {"a": 2, "b": 3}


def test_a_higher_token_in_the_sink_is_passed(tmp_path: Path) -> None:
    """Who had the task under a manager, or on another folder, is fenced too."""
    with TokenFile(tmp_path / "t.json", long_ago) as tokens:
        assert tokens.take({"a": 57, "b": 3}) == {"a": 58, "b": 4}
    with TokenFile(tmp_path / "t.json", long_ago) as tokens:
        assert tokens.take({"a": 3}) == {"a": 59}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A second one is told who has them; once the first has let go, it may."""
    path = tmp_path / "t.json"
    with (
        TokenFile(path, long_ago),
        pytest.raises(StartupError, match=rf"process {os.getpid()}\).*stop it first"),
    ):
        TokenFile(path, long_ago)
    with TokenFile(path, long_ago) as tokens:
        assert tokens.take({"a": 0}) == {"a": 1}


RUN = """
import pathlib, subprocess, sys, time
from worker.standalone.token_file import TokenFile

with TokenFile(pathlib.Path(sys.argv[1]), lambda: 0) as tokens:
    jvm = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, pass_fds=[tokens.descriptor])
    print(jvm.pid, flush=True)
    jvm.wait()
"""
"""A run without a manager, and something that lives on when it is killed, as a frozen JVM does."""


class Orphan:
    """What a killed run has left behind, named by `jvm`; `pid` was the run's."""

    def __init__(self, path: Path) -> None:
        with subprocess.Popen([sys.executable, "-c", RUN, str(path)], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            self.jvm = int(run.stdout.readline())
            self.pid = run.pid
            self._ends = os.pidfd_open(self.jvm)
            run.kill()

    def end(self) -> None:
        """Kill it, and return when it is gone; again, do nothing."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._ends, signal.SIGKILL)
        select.select([self._ends], [], [])


@pytest.fixture
def orphan(tmp_path: Path) -> Iterator[Orphan]:
    """Has the tokens in `t.json`."""
    found = Orphan(tmp_path / "t.json")
    yield found
    found.end()


def test_what_a_killed_run_has_left_behind_keeps_the_next_one_out(orphan: Orphan, tmp_path: Path) -> None:
    """The JVM writes whether its run lives or not; the next run waits a while for it to end, no longer."""
    waited: list[float] = []
    with pytest.raises(StartupError, match=rf"its process {orphan.pid} is gone.*t\.json\.lock` names it"):
        TokenFile(tmp_path / "t.json", long_ago, waited.append)
    assert sum(waited) == pytest.approx(ORPHAN_S)


def test_a_jvm_that_ends_soon_after_its_run_is_waited_for(orphan: Orphan, tmp_path: Path) -> None:
    """It misses its run and ends by itself, some time later than a service that is started again at once."""
    with TokenFile(tmp_path / "t.json", long_ago, lambda _: orphan.end()) as tokens:
        assert tokens.take({"a": 0}) == {"a": 1}


def test_a_damaged_file_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Beginning again at 1 would have this run fenced by the one before."""
    path = tmp_path / "t.json"
    for text in ("", "[]", '{"tokens": {"a": -1}}', '{"tokens": {"a": "x"}}', "\udcff"):
        path.write_text(text, errors="surrogateescape")
        with pytest.raises(StartupError, match=r"t\.json is damaged"):
            TokenFile(path, long_ago)


def test_what_is_not_durable_is_not_taken(tmp_path: Path) -> None:
    """A token that nobody remembers might be given out twice."""
    path = tmp_path / "t.json"
    with TokenFile(path, long_ago) as tokens:
        (tmp_path / "t.json.new").mkdir()
        with pytest.raises(StartupError, match=r"t\.json cannot be used: Is a directory"):
            tokens.take({"a": 0})
        (tmp_path / "t.json.new").rmdir()
        assert tokens.take({"a": 0}) == {"a": 1}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """One line with the path."""
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match=r"~run\.json cannot be used: "):
        TokenFile(tmp_path / "file" / "~run.json", long_ago)


def test_the_place_is_with_the_checkpoints() -> None:
    """Next to the folders of the tasks; a store that is no file system leaves the present folder."""
    assert place_of("checkpoints", "g") == Path("checkpoints/g/~run.json")
    assert place_of("file:///data", "g") == Path("/data/g/~run.json")
    assert place_of("file:/data", "g") == Path("/data/g/~run.json")
    assert place_of("file://localhost/data", "g") == Path("/data/g/~run.json")
    assert place_of("s3a://bucket/x", "g") == Path("sparkherd-run-g.json")
    assert place_of("hdfs:/x", "g") == Path("sparkherd-run-g.json")


tasks = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=3)


@given(st.lists(tasks, max_size=6))
def test_no_token_is_taken_twice(
    tmp_path_factory: pytest.TempPathFactory, runs: list[dict[str, int]]
) -> None:
    """Whatever the sinks say, and in whatever order the tasks come and go."""
    path = tmp_path_factory.mktemp("tokens") / "t.json"
    last: dict[str, int] = {}
    for seen in runs:
        with TokenFile(path, long_ago) as tokens:
            taken = tokens.take(seen)
        assert taken.keys() == seen.keys()
        assert all(taken[task] > max(seen[task], last.get(task, 0)) for task in seen)
        last |= taken
