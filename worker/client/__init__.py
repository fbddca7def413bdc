"""Talking to the managers: typed requests in, a response or a `Failure` out; no exception leaves it.

Connection trouble and time-outs are a `Failure` with the code COORDINATOR_NOT_AVAILABLE, because that is
how a worker reacts to them (protocol §7).
"""
