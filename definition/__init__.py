"""What the definition of a task may say: its source, its SQL, its sink (protocol §6)."""
