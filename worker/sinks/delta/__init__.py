"""The fenced Delta sink: a table's transaction ids are the fence (docs/exactly-once.md)."""
