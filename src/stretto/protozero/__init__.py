"""ProtoZero: protobuf encoding and decoding for tracing, without google.protobuf.

`message` has value classes, `writer` append-only messages, `decoder` reads fields without
copying. `generator` generates modules with these classes from schemas. Nothing in this package
depends on tracing.
"""
