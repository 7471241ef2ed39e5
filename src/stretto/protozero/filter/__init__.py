"""The trace filter: removes from a message all fields that the filter doesn't allow.

`schema` translates generated message classes into filter bytecode, using `generator`;
`bytecode` encodes its words. `load` creates the native engine that applies the bytecode
(`stretto._native.MessageFilter`), with the rules of `strings` that rewrite string fields.
"""
