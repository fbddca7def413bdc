from __future__ import annotations

from worker.silence import Silence


def test_silence_is_counted_in_looks_from_the_last_word_on() -> None:
    """However much time has passed between them: who looks may have been frozen."""
    silence = Silence(3.0, 1.0)
    assert [silence.look(), silence.look()] == [False, False]
    silence.heard()
    assert [silence.look() for _ in range(4)] == [False, False, True, True]


def test_a_limit_shorter_than_a_look_is_one_look() -> None:
    """There is nothing shorter."""
    assert Silence(0.1, 1.0).look()
