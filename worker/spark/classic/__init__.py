"""Spark in a JVM of the worker's own (PySpark's "classic" mode): `--spark-master`, `--spark-conf`."""
