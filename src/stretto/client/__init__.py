"""The client library, in three tiers that stand on each other.

1. `tracing`, `producer_connection`: data sources of this process, offered to services.
2. `data_source`, `tracing_session`: the public API for writing packets and for recording.
3. `track_event/`: slices, instants and counters, itself one data source.

It knows services only through `stretto.ports.endpoints`; `stretto.backends` wires the two.
"""
