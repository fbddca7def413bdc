"""A definition tried on Spark without a query: its columns, a few of its rows, what its sink would say."""
