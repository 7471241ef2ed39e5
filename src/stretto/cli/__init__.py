"""The command line. Only this package prints, parses arguments and exits."""
