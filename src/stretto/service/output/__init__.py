"""The output of a session: service packets, reading, filter, compression and files."""
