"""The client library, in three layers.

1. `tracing`, `producer_connection`: data sources of this process, registered with services.
2. `data_source`, `tracing_session`: the public API for writing packets and for recording.
3. `track_event/`: slices, instants and counters, implemented as one data source.

The client uses services only through `stretto.ports.endpoints`; `stretto.backends` connects the
client to services.
"""
