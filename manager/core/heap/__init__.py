"""Which task fills a heap that several share, by who ran where when it grew; rules without I/O."""
