"""Each task in a process and a JVM of its own, under one worker (`--isolate`)."""
