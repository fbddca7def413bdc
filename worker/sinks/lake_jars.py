"""Java of ours beside Delta and Iceberg: which jars it is in, and what a Spark is told so that it counts.

`connectors/` has that Java. Its jars are files of this package, which wheels have and `make jars` puts into a
checkout; without Delta or Iceberg they are of no use. So whoever has a Spark load those gets ours with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PACKAGES: Final = "spark.jars.packages"
JARS: Final = "spark.jars"
EXTENSIONS: Final = "spark.sql.extensions"
_SESSION_CATALOG: Final = "spark.sql.catalog.spark_catalog"
_FILE_LOGS: Final = "spark.delta.logStore.file.impl"


@dataclass(frozen=True, slots=True)
class Lake:
    """What has tables that Spark lacks words for; `name` is that of its sink, and of its folder here.

    Args:
        artifact: what the name of its own jar begins with.
        extensions: of Spark's SQL, that it is of no use without.
        settings: likewise, unless the user has others.
        settings_of_jar: those that need our jar.
    """

    name: str
    artifact: str
    extensions: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    settings_of_jar: Mapping[str, str] = field(default_factory=dict)

    @property
    def jar(self) -> Path:
        """Ours; it is not there in a checkout without `make jars`, nor in what is installed from one."""
        return Path(__file__).with_name(self.name) / f"sparkherd-{self.name}.jar"

    def is_among(self, named: Iterable[str]) -> bool:
        """Whether Maven coordinates, or paths or URLs of jars, have it."""
        own = re.compile(rf"(?:\A|[/:]){re.escape(self.artifact)}[^/]*\Z")
        return any(own.search(each) for each in named)

    def has_jar(self, named: Iterable[str]) -> bool:
        """Whether ours is among paths or URLs of jars."""
        return any(each.rpartition("/")[2] == self.jar.name for each in named)


LAKES: Final = (
    Lake(
        "delta",
        artifact="delta-spark_",
        extensions=("io.delta.sql.DeltaSparkSessionExtension",),
        settings={_SESSION_CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
        settings_of_jar={_FILE_LOGS: "sparkherd.delta.LinkLogStore"},
    ),
    Lake("iceberg", artifact="iceberg-spark-runtime-"),
)


def with_lakes(conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings with our jars, and what else is needed, for each of Delta and Iceberg that it loads.

    What the settings say themselves stays; extensions are added to theirs, and a jar that they name is not
    taken from here.

    Args:
        conf: with what is loaded in `spark.jars` and `spark.jars.packages`.
    """
    told = dict(conf)
    for lake in LAKES:
        jars = listed(told, JARS)
        if lake.is_among((*jars, *listed(told, PACKAGES))):
            told = _with_lake(told, lake, jars)
    return told


def _with_lake(conf: Mapping[str, str], lake: Lake, jars: list[str]) -> dict[str, str]:
    added = [] if lake.has_jar(jars) or not lake.jar.is_file() else [str(lake.jar)]
    of_jar = lake.settings_of_jar if lake.has_jar((*jars, *added)) else {}
    others = [each for each in listed(conf, EXTENSIONS) if each not in lake.extensions]
    lists = {JARS: [*jars, *added], EXTENSIONS: [*lake.extensions, *others]}
    joined = {key: ",".join(items) for key, items in lists.items() if items}
    return {**lake.settings, **of_jar, **conf, **joined}


def without_jar(conf: Mapping[str, str]) -> Iterator[Lake]:
    """Those that settings have Spark load, and whose sink cannot write all the same: our jar is nowhere."""
    told = with_lakes(conf)
    jars = listed(told, JARS)
    return (
        lake for lake in LAKES if lake.is_among((*jars, *listed(told, PACKAGES))) and not lake.has_jar(jars)
    )


def listed(conf: Mapping[str, str], name: str) -> list[str]:
    """The items of a setting that has commas between them."""
    return [item for item in map(str.strip, conf.get(name, "").split(",")) if item]
