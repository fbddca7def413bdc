"""Rows that this worker's tasks have put aside: what people ask about them, and what they are shown.

Where the rows are, and how they are played again, is the engine's (protocol §5, Quarantined rows).
"""
