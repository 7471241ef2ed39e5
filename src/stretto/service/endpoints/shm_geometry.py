"""Size of a producer's shared memory and of its pages.

Source: docs/formats/shared_memory.md, "Buffer geometry".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from stretto.protos.config import TraceConfig

ABI_PAGE_SIZE: Final = 4096
MAX_PAGE_SIZE: Final = 32 * 1024
MAX_SHM_SIZE: Final = 32 * 1024 * 1024
DEFAULT_SHM_SIZE: Final = 256 * 1024
DEFAULT_PAGE_SIZE: Final = 4096


def valid_geometry(
    size: int,
    page_size: int,
    default_size: int = DEFAULT_SHM_SIZE,
    default_page_size: int = DEFAULT_PAGE_SIZE,
) -> tuple[int, int]:
    """Return the requested geometry, limited to the maximal sizes, or the default geometry.

    The default geometry replaces an invalid request.

    Args:
        size: Bytes of the shared memory, 0 for the default.
        page_size: Bytes of a page, 0 for the default.
        default_size: Size in bytes that replaces 0 and an invalid geometry.
        default_page_size: Page size in bytes that replaces 0 and an invalid geometry.

    Returns:
        (size, page size) in bytes, the size a multiple of the page size.
    """
    size = min(size or default_size, MAX_SHM_SIZE)
    page_size = min(page_size or default_page_size, MAX_PAGE_SIZE)
    pages_of_abi = page_size // ABI_PAGE_SIZE
    if (
        page_size % ABI_PAGE_SIZE
        or pages_of_abi & (pages_of_abi - 1)
        or not pages_of_abi
        or size < page_size
        or size % page_size
    ):
        return default_size, default_page_size
    return size, page_size


def wished_geometry(
    config: TraceConfig, producer_name: str, size_hint: int, page_size_hint: int
) -> tuple[int, int]:
    """Return the requested size of the memory and of its pages; 0 if there is no request.

    Requests in the config have precedence over those of the producer.
    """
    for producer in config.producers:
        if producer.producer_name == producer_name:
            size = producer.shm_size_kb * 1024 or size_hint
            return size, producer.page_size_kb * 1024 or page_size_hint
    return size_hint, page_size_hint
