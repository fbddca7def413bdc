"""What is asked of a manager over HTTP: bodies in and out, nothing decided here."""
