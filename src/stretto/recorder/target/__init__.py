"""Code that runs inside recorded programs; it doesn't import `stretto.recorder.host`."""
