"""Messages of Perfetto: configuration, trace contents, and what the sockets carry.

The modules are generated and load in no time: each class is made when it is
first used. Their schemas are Perfetto's own, and `ipc/*.proto`.
"""
