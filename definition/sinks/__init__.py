"""The fenced formats of a definition's `sink`: what each is told, and what it can do; no I/O."""
