-- The arguments of _interval_intersect! are lists, so it is written in Python (list_macros.py).
include perfetto module intervals.overlap;
