"""What every other package stands on: errors, ids, clocks, the task runner, sockets with
descriptors, memory, and the order of things at fork and exit."""
