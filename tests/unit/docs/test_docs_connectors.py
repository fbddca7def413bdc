"""The connectors that the prose and the causes of tasks name are those that `make jars` copies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from protocol.connectors import PACKAGES
from tests.unit.docs.pages import PAGES, ROOT

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAVEN = "{http://maven.apache.org/POM/4.0.0}"
ROW = re.compile(r"^\| `(\w+)` \| `([^`:]+:[^`:]+:[^`:]+)` \|", re.MULTILINE)
COORDINATE = re.compile(r"\b[\w.-]+:[\w.-]+_2\.\d+:\d[\w.-]*\w")
HISTORY = "CHANGELOG.md"
"""It says what was true on its day."""
POM = ET.parse(ROOT / "connectors/pom.xml").getroot()
PROPERTIES = {
    f"${{{each.tag.removeprefix(MAVEN)}}}": each.text or ""
    for part in POM.iterfind(f"{MAVEN}properties")
    for each in part
}
DOCUMENTED = dict(ROW.findall((ROOT / "docs/connectors.md").read_text()))
"""The package of each format in the table."""


def coordinate(item: Element) -> str:
    """As `--packages` takes it."""
    found = ":".join(item.findtext(f"{MAVEN}{name}", "") for name in ("groupId", "artifactId", "version"))
    for name, value in PROPERTIES.items():
        found = found.replace(name, value)
    return found


COPIED = {coordinate(item) for item in POM.iter(f"{MAVEN}artifactItem")}


def named() -> set[tuple[str, str]]:
    """The coordinates of packages for a Scala that any page names."""
    return {
        (str(page.relative_to(ROOT)), found)
        for page in PAGES
        if page.name != HISTORY
        for found in COORDINATE.findall(page.read_text())
    }


def test_the_table_of_connectors_has_what_is_copied() -> None:
    """By the versions that were run."""
    assert {"kafka", "avro"} <= DOCUMENTED.keys()
    assert {name: found for name, found in DOCUMENTED.items() if found not in COPIED} == {}


def test_whoever_lacks_a_connector_is_told_of_the_same_package() -> None:
    """The cause of a task that nobody can run says what to start a worker with."""
    spark = PROPERTIES["${spark.version}"]
    assert {name: PACKAGES[name].format(spark=spark) for name in DOCUMENTED} == DOCUMENTED


def test_no_page_names_another_version_of_a_connector() -> None:
    """Wherever a command or a setting has a coordinate."""
    versions = dict(each.rsplit(":", 1) for each in COPIED)
    wrong = {
        (page, found)
        for page, found in named()
        if (known := versions.get(found.rpartition(":")[0])) and not found.endswith(f":{known}")
    }
    assert wrong == set()


def test_the_connectors_are_of_the_spark_that_the_tests_are_run_on() -> None:
    """A connector is made for one line of Spark."""
    assert f"pyspark=={PROPERTIES['${spark.version}']}" in (ROOT / "constraints.txt").read_text().split()
