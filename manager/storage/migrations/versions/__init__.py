"""The schema changes, oldest first."""
