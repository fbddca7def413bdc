"""Spark behind a Spark Connect server: `--spark-remote sc://…`.

A query belongs to a session of the server's and runs there, batches and all; the worker only says what to do.
So a query outlives a worker that is killed, and what is done with a batch (`batch`) is pickled and
runs in a Python process of the server's, where neither the worker's memory nor its lease is. What holds there
is the fence row, which is in the database that is written to (docs/spark-clusters.md).
"""
