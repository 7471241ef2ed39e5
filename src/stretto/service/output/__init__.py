"""Output of a session: packets of the service, reading, filter, compression and files."""
