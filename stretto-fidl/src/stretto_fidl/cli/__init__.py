"""The verb `stretto fidl`: a module for each subcommand."""
