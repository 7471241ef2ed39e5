"""The verb `trace`: a consumer of a machine's tracing service, like Perfetto's own command.

    options     the command line; contradicting options are refused
    config      a TraceConfig from a file, standard input or the light mode's options
    output      the output file of the trace
    session     one session, from its start to its last byte
    snapshot    a copy of a running session
    command     combines the other modules; only this module waits

Source of flags, exit codes and texts: docs/formats/command_line.md.
"""
