"""The verb `flows`: reports the RPC calls of a trace."""
