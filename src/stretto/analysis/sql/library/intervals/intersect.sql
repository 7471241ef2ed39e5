-- _interval_intersect! takes lists: it is written in Python (list_macros.py).
include perfetto module intervals.overlap;
