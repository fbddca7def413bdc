"""The HTTP front: bodies in and out, nothing decided here."""
