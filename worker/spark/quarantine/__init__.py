"""Requests about the rows that a task has put aside: shown, played again, thrown away."""
