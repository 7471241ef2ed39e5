"""What runs inside recorded programs; it imports nothing of `stretto.recorder.host`."""
