"""The verb `doctor`: reports what Stretto can record on this machine, and what is missing."""
