"""From schemas to code: front ends that read schemas, emitters that write modules.

`proto_parser` and `descriptor_set` make a `schema.Schema`; `python_emitter`,
`stub_emitter` and `c_emitter` turn it into text; `plugin` lets protoc ask for
it, `__main__` anybody. Only development needs this package: what it writes is
checked in, and depends on `stretto.protozero` alone.
"""
