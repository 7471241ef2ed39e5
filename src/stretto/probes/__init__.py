"""Data sources for the system. They use the client's public names only."""
