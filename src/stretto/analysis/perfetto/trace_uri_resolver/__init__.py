"""What a reference to traces stands for: a path, a file, chunks of bytes, a URI, a resolver."""

from __future__ import annotations
