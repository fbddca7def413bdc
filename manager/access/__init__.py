"""Who may ask a manager for what: tokens, their roles and groups."""
