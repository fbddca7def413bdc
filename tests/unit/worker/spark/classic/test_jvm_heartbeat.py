from __future__ import annotations

import threading

from worker.spark.classic.jvm_heartbeat import JvmHeartbeat


class Jvm:
    """Answers when the test lets it."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked = threading.Semaphore(0)
        self.answer = threading.Semaphore(0)
        self._fails = fails

    def __call__(self) -> int:
        self.asked.release()
        assert self.answer.acquire(timeout=120)
        if self._fails:
            raise ConnectionError("no thread for you")
        return 1


def test_a_jvm_that_answers_is_felt() -> None:
    """However long it takes, as long as that is below the limit; each answer makes it start anew."""
    jvm = Jvm()
    heartbeat = JvmHeartbeat(jvm, 3.0)
    heartbeat.start()
    assert jvm.asked.acquire(timeout=120)
    assert [heartbeat.is_alive(), heartbeat.is_alive()] == [True, True]
    jvm.answer.release()
    assert jvm.asked.acquire(timeout=120)  # it was heard: it is being asked again
    assert [heartbeat.is_alive() for _ in range(4)] == [True, True, True, False]
    heartbeat.stop()
    jvm.answer.release()


def test_an_error_is_no_answer() -> None:
    """Not even a refusal: a JVM that cannot start a thread is of no use."""
    jvm = Jvm(fails=True)
    heartbeat = JvmHeartbeat(jvm, 2.0)
    heartbeat.start()
    jvm.answer.release()
    assert jvm.asked.acquire(timeout=120)
    assert jvm.asked.acquire(timeout=120)
    assert [heartbeat.is_alive(), heartbeat.is_alive()] == [True, False]
    heartbeat.stop()
    jvm.answer.release()
