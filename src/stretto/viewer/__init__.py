"""Shows traces: a small HTTP and WebSocket server for the Perfetto UI in the user's browser.

    bytes --> http_request --> http_connection --> trace_site    `stretto view`
                                        |
                                        +--> websocket --> bridge    `stretto bridge`

Everything listens on 127.0.0.1 only, and answers only the user who started it (`peer_user`) and
the pages that are meant (`access`). The machines are sans-IO: bytes in, bytes and events out.
"""
