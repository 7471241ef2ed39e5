"""The subcommands of `stretto fidl`, a module for each."""
