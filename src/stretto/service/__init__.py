"""The tracing service: producers, sessions, buffers, flushes, files, statistics.

Begin with `tracing_service.TracingService`; `tracing_session` holds the state machine. It is
loaded into the program that records itself, so that `typing`, which takes longer to
import than the service, is left to type checkers.
"""
