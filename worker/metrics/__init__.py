"""What a worker shows of itself in figures."""
