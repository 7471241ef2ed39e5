"""Backends: they connect the client to a tracing service, in this process or in another one."""
