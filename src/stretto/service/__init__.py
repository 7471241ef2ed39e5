"""The tracing service: producers, sessions, buffers, flushes, files, statistics.

Begin with `tracing_service.TracingService`; `tracing_session` holds the state machine.
"""
