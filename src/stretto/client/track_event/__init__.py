"""Track events: slices, instants and counters on tracks, as one data source.

The types are native (`stretto._native`): `Category`, `Track`, `Flow`. This package decides which
categories a session records, and writes the descriptors of the process, its threads and its tasks.
"""
