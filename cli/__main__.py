"""`python -m cli` is `sparkherd`, of this very interpreter."""

from cli.main import main

main()
