"""Public test kit: time and loops under a test's control, peers without sockets."""
