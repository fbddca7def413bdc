"""Which tests stay together when two processes share them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from xdist.scheduler import LoadScopeScheduling

ONE_BY_MODULE: Final = ("tests/browser", "tests/acceptance/test_spark_connect.py")
ALL_TOGETHER: Final = ("tests/integration/spark/connect", "tests/integration/spark/kafka")


class SharedServersScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Deals out single tests, but those as a whole that share a server or a browser, which start slowly."""

    def _split_scope(self, nodeid: str) -> str:
        module = PurePosixPath(nodeid.partition("::")[0])
        if any(module.is_relative_to(each) for each in ONE_BY_MODULE):
            return str(module)
        return next((each for each in ALL_TOGETHER if module.is_relative_to(each)), nodeid)
