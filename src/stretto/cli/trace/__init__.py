"""The verb `trace`: the consumer of a machine's tracing service, as Perfetto's own command is.

    options     the command line; what doesn't go together is refused
    config      a TraceConfig of a file, standard input or the light mode's options
    output      the file that the trace goes to
    session     one session from its start to its last byte
    snapshot    a copy of a session that runs
    command     puts them together; the only one that waits

Source of flags, exit codes and texts: docs/formats/command_line.md.
"""
