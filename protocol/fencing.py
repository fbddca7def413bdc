"""The numbers that fence: tokens, and the numbers of resets (protocol §5, Ownership)."""

from __future__ import annotations

from typing import Final

CLOCK_ENDS: Final = 2**32 - 2**24
"""In seconds since 1970, in the year 2105: no clock, however wrong, takes numbers beyond 32 bits."""
_MS: Final = 1000


def next_number(last: int, now_ms: int) -> int:
    """The number to issue after `last`: higher than it, and at least the present second since 1970.

    A counter alone repeats itself once its memory is gone: a database that was put back from a copy, another
    database, or `sparkherd run`, which has none, would issue numbers again that sinks have seen. The clock is
    in no copy. As in a hybrid logical clock every number is at least the second it was issued in, so whoever
    issues the next one in a later second, knowing of none before, issues a higher one; provided that clocks
    do not go back, and that a task changed hands less than once a second on average. Otherwise a sink refuses
    the lower number: rows wait for a person, and none is lost or written twice.

    Args:
        last: the highest number that is known of, 0 if none is.
        now_ms: the wall clock, in milliseconds since 1970.
    """
    return max(last + 1, min(now_ms // _MS, CLOCK_ENDS))
