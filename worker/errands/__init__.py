"""Errands that the manager gives to this worker: how it comes by them, and by whom they are done.

What an errand is about is its job's: `worker.checks` and `worker.quarantined_rows` (protocol §5, Errands).
"""
