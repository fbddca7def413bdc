"""The tasks of a group: what they are, and who owns them under which token (protocol §5)."""
