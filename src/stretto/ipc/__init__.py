"""Perfetto's socket protocol: frames, services bound by name, requests and replies.

It knows nothing of tracing: a service is a name and a list of methods. The
machines (`client`, `host`) take bytes and descriptors and give frames; only
`connection` and `listener` touch sockets.
"""
