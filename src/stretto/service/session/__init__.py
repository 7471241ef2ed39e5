"""Sessions: the config's checks, the state machine, data sources, flushes, triggers and clones."""
