"""`stretto traced`: the tracing service of a machine, as a daemon.

command       the verb: combines the other modules
arguments     the options
permissions   the users who may connect to the sockets
sockets       opens the sockets, or uses those of a service manager (activation)
pid_file      the file with the daemon's process id
notify        notifies the service manager of the daemon's state
log           messages on standard error
daemon        the service and its ports, from the first connection to the shutdown
"""
