"""Messages of Perfetto: configuration, trace contents, and socket protocols.

The modules are generated, and fast to import: each class is created when it is first used. Their
schemas are Perfetto's own, and `ipc/*.proto`.
"""
