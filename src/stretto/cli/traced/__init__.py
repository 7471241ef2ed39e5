"""`stretto traced`: the tracing service of a machine, as a daemon.

command       the verb: reads the options, puts the rest together
arguments     the options
permissions   who may use the sockets
sockets       opens them, or takes over those of a service manager (activation)
background    leaves the terminal
pid_file      where the daemon notes its number
notify        tells a service manager how far it is
log           what it says to standard error
daemon        the service and its ports, from the first connection to the clean end
"""
