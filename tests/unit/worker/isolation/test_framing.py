from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definition.document import parse_definition
from protocol.messages.resources import WorkerResources
from protocol.messages.tasks import Reached, TaskHome, TaskReset
from telemetry.secrets import SECRETS
from worker.isolation.framing import MOST_BYTES, FrameError, Unframer, frame
from worker.isolation.messages import (
    Answer,
    At,
    Ended,
    Fault,
    Lost,
    MayWrite,
    News,
    OfTask,
    OfWorker,
    Open,
    Refused,
    Run,
    Started,
    Stop,
    Takes,
    Up,
)
from worker.left_out import LeftOut
from worker.query_engine import Progress, QueryError, QuerySpec, Stall, Totals
from worker.spark.settings import SparkSettings

FAULT = Fault("a\nb", fenced=True, permanent=False, outage=True, path="sink")
TOLD: tuple[OfTask, ...] = (
    At("the sink"),
    Up(),
    Started("/checkpoints/g/t", 7),
    Started(None, None),
    MayWrite(3),
    News.of(
        Progress(4, {"rows": 2, "lag": {"files": 1.0}}, Totals(1, 2, 3, LeftOut(1, 0, {"a": 1}))),
        "no brokers",
        {("offsets", True): 2, ("offsets", False): 1},
        has_work=True,
        is_at_work=True,
        stall=Stall(301.5, "it waits for a lock", 240.5),
    ),
    Takes(WorkerResources(heap_bytes=5, gc_share=0.5)),
    Refused(FAULT),
    Ended(None),
    Ended(FAULT),
    Lost("the JVM was killed by signal 9"),
)


def unframer() -> Unframer[OfTask]:
    return Unframer(msgspec.msgpack.Decoder(OfTask))


@given(st.lists(st.integers(1, 40), max_size=60))
def test_messages_are_the_same_however_they_are_cut(cuts: list[int]) -> None:
    """Whole ones are there as soon as their last byte is."""
    sent = b"".join(map(frame, TOLD))
    reading, received = unframer(), []
    for cut in [*cuts, len(sent)]:
        part, sent = sent[:cut], sent[cut:]
        received += list(reading.feed(part))
    assert received == list(TOLD)


def test_what_is_to_be_run_comes_over_whole() -> None:
    """Definition, reset and place included; and the words that follow."""
    definition = parse_definition(
        b'{"source": {"format": "rate"}, "sink": {"format": "noop"}, "weight": 2, "trigger":'
        b' {"processing_time": "1 second"}, "expect": [{"name": "a", "where": "value > 1"}]}'
    )
    spec = QuerySpec("g", "t", 9, definition, TaskReset(3), Reached(8, "/c", "anna"), TaskHome("a", "b"))
    settings = SparkSettings(app_name="a", checkpoint_root="/c", conf={"a": "b"}, inherited=(3,))
    words = (Open(settings, "g", "t"), Run.of(spec), Stop(0.5), Answer(4, may_write=True))
    opening, run, *others = Unframer(msgspec.msgpack.Decoder(OfWorker)).feed(b"".join(map(frame, words)))
    assert isinstance(run, Run)
    assert (opening, run.spec) == (words[0], spec)
    assert others == [Stop(0.5), Answer(4, may_write=True)]


@pytest.mark.parametrize(
    "sent", [b"\x00\x00\x00\x01\xc1", frame(Stop(1.0)), (MOST_BYTES + 1).to_bytes(4, "big")]
)
def test_what_is_no_message_is_an_error(sent: bytes) -> None:
    """No MessagePack, the wrong side's, or longer than any."""
    with pytest.raises(FrameError):
        list(unframer().feed(sent))


def test_secrets_of_a_task_do_not_travel_back() -> None:
    """The worker may not know them, and so could not hide them itself."""
    SECRETS.learn("correct horse")
    fault = Fault.of(QueryError("cannot log in with correct horse", outage=True, path="sink.options"))
    assert "horse" not in fault.cause
    assert (fault.error.outage, fault.error.path) == (True, "sink.options")
    stall = Stall(301, "it asks correct horse")
    news = News.of(None, "correct horse is refused", {}, has_work=False, is_at_work=False, stall=stall)
    assert "horse" not in str(news)
