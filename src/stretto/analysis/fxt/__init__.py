"""Fuchsia's trace format, FXT: reading, writing, and conversion to and from Perfetto's packets.

    format          numbers of the format: types, limits
    records         its records as Python values
    arguments       typed arguments: bytes <-> values
    record_reader   file -> records           record_writer   records -> file
    enclosing       finds the slice of each point of a flow
    importer        records -> packets        exporter        packets -> records

Source: the public specification, fuchsia.dev/fuchsia-src/reference/tracing/trace-format.
"""
