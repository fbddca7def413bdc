"""Who runs what: the `Assignor` interface and the built-in ones. Pure and deterministic."""
