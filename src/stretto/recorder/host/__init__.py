"""The recorder process: runs one recording of one program, from its start to the written trace.

The package prints nothing and parses no arguments: `stretto.cli.record` passes options and a
reporter to the recorder.
"""
