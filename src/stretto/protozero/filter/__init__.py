"""The trace filter: which fields of a schema may stay in a message.

`schema` turns generated message classes into bytecode through `generator`, `bytecode`
writes its words down; the engine that applies it is native (`stretto._native.MessageFilter`),
`load` makes one with `strings` as the rules by which it rewrites text.
"""
