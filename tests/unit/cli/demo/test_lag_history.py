"""The lag over time, and its drawing."""

from __future__ import annotations

from cli.demo.lag_history import LagHistory


def history(*lags: int | None) -> LagHistory:
    """One that was looked at each second."""
    made = LagHistory()
    for second, lag in enumerate(lags):
        made.add(float(second), lag)
    return made


def test_each_second_is_a_character() -> None:
    """Between nothing and the most there was; what nobody knew in between is shown as such."""
    assert history(0, 350, None, 700, 100).drawn(60) == "▁▄·█▂"


def test_a_long_time_is_drawn_in_the_same_width() -> None:
    """Several seconds are one character, the largest of them: no peak is lost. The last one is itself."""
    drawn = history(*[0] * 95, 70, *[0] * 24).drawn(60)
    assert len(drawn) <= 60
    assert drawn.count("█") == 1
    assert history(*[70] * 119, 0).drawn(60)[-2:] == "█▁"


def test_the_last_look_of_a_second_counts() -> None:
    """And that of seconds in which nobody looked is what was seen after them."""
    made = history(10)
    for at_s, lag in ((0.5, 70), (3.0, 0)):
        made.add(at_s, lag)
    assert (made.most, made.drawn(60)) == (70, "█▁▁▁")


def test_nothing_is_drawn_before_it_is_known() -> None:
    """Nor where it never is, as of tasks that read files."""
    assert history(None, None, 7).drawn(60) == "█"
    unknown = history(None, None)
    assert (unknown.known, unknown.most, unknown.drawn(60), str(unknown)) == (False, None, "", "unknown")
    assert (LagHistory().known, LagHistory().drawn(60)) == (False, "")


def test_the_most_and_the_last() -> None:
    """What is told of it at the end."""
    made = history(5, 12_000, 0)
    assert (made.most, made.last, str(made)) == (12_000, 0, "0")
