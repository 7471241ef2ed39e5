"""Data sources that look at the system. Written on the client's public names only."""
