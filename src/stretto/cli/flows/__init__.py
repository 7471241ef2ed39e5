"""The verb `flows`: RPC calls of a trace."""
