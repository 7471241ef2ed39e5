"""Generates code from schemas: front ends read schemas, emitters write modules.

`proto_parser` and `descriptor_set` create a `schema.Schema`; `python_emitter`, `stub_emitter` and
`c_emitter` generate text from it. `plugin` is the plugin of protoc, `__main__` the command. This
package is only needed for development: the generated modules are checked in, and depend only on
`stretto.protozero`.
"""
