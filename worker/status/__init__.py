"""The worker's own endpoint: what it is doing, for whoever is on the same machine."""
