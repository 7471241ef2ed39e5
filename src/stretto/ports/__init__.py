"""Where the service and the client meet, in one process or over a socket: `endpoints` has
the interfaces, the other modules put them on `stretto.ipc`."""
