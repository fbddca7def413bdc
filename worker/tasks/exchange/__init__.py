"""What a worker and its manager tell each other of tasks, in batches: claims, releases and reports."""
