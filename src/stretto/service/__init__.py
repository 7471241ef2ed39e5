"""The tracing service: producers, sessions, buffers, flushes, files, statistics.

Begin with `tracing_service.TracingService`; the state machine of a session is
`session.service_tracing_session.ServiceTracingSession`.

A program that records itself imports this package. Importing `typing` takes longer than
importing the service, so only type checkers import it.
"""
