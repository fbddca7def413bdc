"""The `sparkherd` command: thin, one module a noun."""
