"""What is between a socket and an endpoint: connections, their limits, requests taken apart, answers made."""
