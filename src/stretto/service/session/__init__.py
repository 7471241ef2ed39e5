"""Sessions: checks of the config, states, data sources, flushes, triggers and clones."""
