"""The contract between manager, workers and clients: names, error codes and message bodies.

Pure data. Nothing here does I/O and nothing here imports another package of ours;
everything else may import this.
"""
