"""Checks of definitions that the manager gives to this worker: when they are done, and what is said of them.

The Spark part is `worker.spark.checks.check`; what is here knows nothing of Spark (protocol §5, Checks).
"""
