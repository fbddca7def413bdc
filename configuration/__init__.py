"""How daemons are configured: one schema a role, read from flags, environment and a file (protocol §1)."""
