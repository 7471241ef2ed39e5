"""Generates code from schemas: front ends read schemas, emitters write modules.

`proto_parser` and `descriptor_set` create a `schema.Schema`; `python_emitter`, `stub_emitter` and
`c_emitter` generate text from it. `plugin` makes it a plugin of protoc, `__main__` a command. This
package is only needed for development: the generated modules are checked in, and depend only on
`stretto.protozero`.
"""
