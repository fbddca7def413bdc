"""The `sparkherd` command; `cli.main` lists its commands, each a module of `cli.commands`."""
