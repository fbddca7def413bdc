"""What a manager shows of itself, derived from what its runtime sees; the core knows nothing of it."""
