"""`stretto fidl`: what is done with FIDL definitions, a module per subcommand."""
