"""The verb `convert`: traces from one format to another."""
