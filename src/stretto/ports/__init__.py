"""The interfaces between the service and the client, and their transport over sockets.

`endpoints` defines the interfaces; the other modules implement them with `stretto.ipc`.
"""
