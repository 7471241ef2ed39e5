"""Shows traces: an HTTP server and a WebSocket server for the Perfetto UI in the user's browser.

    page_server (http.server) --> trace_site    `stretto view`
    bridge (websockets)                         `stretto bridge`

Both servers listen on 127.0.0.1 only. They answer only the user who started them (`peer_user`,
`connection_slots`), and only requests of allowed pages (`access`).
"""
