"""Watching the managers of the herd and the database (docs/alarms.md)."""
