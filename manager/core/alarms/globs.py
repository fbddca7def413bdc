"""Names with `*` and `?`: compared in bounded time, the product of both lengths at most."""

from __future__ import annotations


def fits(pattern: str, name: str) -> bool:
    """Whether `name` is what `pattern` stands for: `*` for any characters, `?` for one.

    Only the last `*` is ever gone back to, which is enough, so nothing is tried twice.
    """
    if pattern == "*":
        return True
    at = place = resumed = 0
    star = -1
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, resumed, at = at, place, at + 1
        elif at < len(pattern) and pattern[at] in {"?", name[place]}:
            at, place = at + 1, place + 1
        elif star >= 0:
            resumed += 1
            at, place = star + 1, resumed
        else:
            return False
    return all(rest == "*" for rest in pattern[at:])
