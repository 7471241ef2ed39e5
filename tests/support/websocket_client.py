"""The client's end of a WebSocket, as bytes: frames to send, and what the server's frames say."""

from __future__ import annotations

from stretto.viewer.websocket_frames import encode_frame

MASK = b"\x37\xfa\x21\x3d"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # the one of RFC 6455, section 1.3
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def client_frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    return encode_frame(opcode, payload, final=final, mask=MASK)


def server_frames(data: bytes) -> list[tuple[int, bytes]]:
    """Opcode and payload of each of a server's frames; they are whole, final and unmasked."""
    frames = []
    while data:
        opcode, length = data[0] & 0x0F, data[1]
        assert data[0] & 0xF0 == 0x80
        start = 2
        if length >= 126:
            start = 4 if length == 126 else 10
            length = int.from_bytes(data[2:start])
        assert len(data) >= start + length
        frames.append((opcode, data[start : start + length]))
        data = data[start + length :]
    return frames


def handshake(
    path: str = "/traced",
    *,
    host: str = "127.0.0.1:8037",
    origin: str | None = "https://ui.perfetto.dev",
    key: str = KEY,
    version: str = "13",
) -> bytes:
    """A browser's request."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        f"Sec-WebSocket-Version: {version}",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    ]
    if origin is not None:
        lines.append(f"Origin: {origin}")
    return "\r\n".join([*lines, "", ""]).encode()
