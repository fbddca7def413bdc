"""The commands: what is asked for, asked of a manager or a database, and shown."""
