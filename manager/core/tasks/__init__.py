"""The tasks of a group: what they are, who is given them, who owns them under which token (PROTOCOL.md §5)."""
