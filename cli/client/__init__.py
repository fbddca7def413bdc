"""Requests to managers as commands make them: one after the other, each manager in turn."""
