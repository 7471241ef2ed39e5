"""FIDL: the interface definition language of Fuchsia, for Python programs on Linux.

    compiler     definitions to the JSON IR
    bindings     Python classes of the IR, loaded or generated
    codec        values to bytes and back
    transport    clients and servers over unix sockets

Calls are traced where `stretto.flows.install()` has been called; this package does not import the
tracer.
"""
