"""The command line: the only place that prints, parses arguments and exits."""
