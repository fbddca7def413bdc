"""Options and arguments that several commands have, and what comes with them."""
