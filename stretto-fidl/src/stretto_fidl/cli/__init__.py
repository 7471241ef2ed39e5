"""The subcommands of `stretto fidl`; each has a module of its own."""
