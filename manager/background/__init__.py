"""What a manager does beside its requests: loops, the audit log, the tokens that are known."""
