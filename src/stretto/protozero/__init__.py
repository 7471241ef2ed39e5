"""ProtoZero: protobuf made for tracing, without google.protobuf.

`message` holds the plain value classes, `writer` the append-only ones,
`decoder` reads fields where they lie, `generator` makes modules of them all
from schemas. Nothing here knows what a trace is.
"""
