"""Types of the native data path (native/bind over native/core).

Every class here owns native memory; none of them knows sockets, sessions or
configuration.  Sizes are bytes, times nanoseconds of CLOCK_BOOTTIME, ids as
in `stretto.base.ids`.

It is long because an extension module has one stub, and this one has all types of
the data path: a section for each part of `native/bind`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import CodeType
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar, final

from stretto.base.errors import DecodeError

_I = TypeVar("_I", bound=type[IndexedMessage])
_M = TypeVar("_M", default=bytes)
_T = TypeVar("_T")
_W = TypeVar("_W", bound=MessageWriter)

# --- service side -----------------------------------------------------------

RING: Final = 1
DISCARD: Final = 2

@final
class BufferTable:
    """Trace buffers of one service, by global buffer id."""

    def __init__(self) -> None: ...
    def create(self, buffer_id: int, size: int, policy: int, fd: int = -1) -> None:
        """Make a buffer; `fd` >= 0 keeps it in that file (for recovery).

        Raises ValueError (id in use, size 0), MemoryError, OSError.
        """
    def remove(self, buffer_id: int, /) -> None: ...
    def set_producer(
        self, buffer_id: int, producer_id: int, uid: int, pid: int, machine_id: int = 0
    ) -> None: ...
    def stats(self, buffer_id: int, /) -> dict[str, int]:
        """`st_buffer_stats` by field name, plus `buffer_size` and `unread`."""
    def writer_stats(
        self, buffer_id: int, /
    ) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
        """Who has written into a buffer, in order of appearance.

        Each as (producer id, writer id, counts, sums): its complete chunks by the size
        of their payload, in 11 buckets whose upper bounds are 8, 32, 128, 512, 1024,
        2048, 4096, 8192, 12288, 16384 bytes and none; and the sums of those sizes.
        """
    def set_watermark(self, buffer_id: int, eventfd: int, unread_bytes: int) -> None:
        """Write to `eventfd` whenever more than that is unread.

        The descriptor stays the caller's; set -1 before closing it.
        """
    def clone(self, source_id: int, clone_id: int) -> None:
        """Copy a buffer, read position included. Raises ValueError, MemoryError."""
    def exchange(self, buffer_id: int, other_id: int) -> None:
        """Have two buffers swap what they hold; writers notice nothing."""
    def recover(self, buffer_id: int, fd: int) -> None:
        """Adopt the ring that a process left in a file. Raises ValueError."""

@final
class Readback:
    """What a session remembers while its buffers are read."""

    def __init__(self, table: BufferTable, machine_id: int = 0) -> None: ...
    def begin(self, buffer_id: int, /) -> None:
        """Start a read pass over a buffer."""
    def read(self, buffer_id: int, limit: int) -> tuple[bytes, bool]:
        """Packets of the pass as trace bytes (`0a`, length, packet, repeated).

        Stops at about `limit` bytes; the flag says that the pass has more.
        Releases the GIL.
        """
    def sequence_id(self, producer_id: int, writer_id: int) -> int: ...
    def copy(self) -> Readback:
        """The same, to go on with copies of the buffers."""
    @property
    def packets(self) -> int: ...
    @property
    def invalid_packets(self) -> int: ...

@final
class MessageFilter:
    """Copies messages without the fields that a bytecode denies (core/message_filter.h)."""

    def __init__(
        self,
        bytecode: bytes | bytearray | memoryview,
        overlay: bytes | bytearray | memoryview = b"",
        string_filter: Callable[[bytes, int], bytes | None] | None = None,
    ) -> None:
        """Load a bytecode, and an overlay unless it is empty.

        Args:
            string_filter: is given each string to be rewritten, and its semantic type;
                returns as many bytes, or None to leave it as it is.

        Raises ValueError: it says what is wrong with the bytecode.
        """
    def set_root(self, path: Sequence[int], /) -> None:
        """Filter messages that are reached from message 0 through these fields.

        Raises ValueError if one of them is no nested message.
        """
    def query(self, message: int, field: int) -> tuple[str, int] | None:
        """The rule for a field of a message, by numbers; None if it is denied.

        ("simple", 0), ("nested", number of the message) or ("string", semantic type).
        """
    @property
    def messages(self) -> int:
        """How many messages the bytecode describes."""
    def filter(self, data: bytes | bytearray | memoryview, /) -> bytes | None:
        """Filter one message; None if it is malformed."""
    def filter_trace(
        self, trace: bytes | bytearray | memoryview, /
    ) -> tuple[bytes, int, int, int, int]:
        """Filter each packet of a trace.

        Returns the trace; how many packets there were, and malformed ones; the bytes of
        packets, without their frames, before and after.

        A malformed packet becomes an empty one. Raises ValueError if the trace isn't a
        row of whole packets, and what the string filter raises.
        """

@final
class ProducerEndpointCore:
    """Service side of one producer's data path (core/producer_endpoint.h)."""

    def __init__(self, table: BufferTable, producer_id: int) -> None: ...
    def attach_fd(self, fd: int, size: int, page_size: int) -> None:
        """Map the producer's shared memory, once (the descriptor stays the caller's).

        Raises ValueError unless it is a memfd of that size at least, sealed
        against shrinking, and the geometry is Perfetto's.
        """
    def allow_buffer(self, buffer_id: int, allow: bool) -> None: ...
    def register_writer(self, writer_id: int, buffer_id: int) -> None: ...
    def unregister_writer(self, writer_id: int, /) -> None: ...
    def commit(self, request: bytes | bytearray | memoryview, /) -> int:
        """Handle one CommitDataRequest; returns its flush_request_id or 0.

        Malformed input is counted in `stats`, never raised.
        """
    def commit_frames(
        self, data: bytes | bytearray | memoryview, service_id: int, method_id: int
    ) -> tuple[int, int, int]:
        """Handle the leading run of CommitData frames without a reply in a stream.

        Stops at the first frame that is anything else (another method, a reply
        wanted, incomplete). Returns (bytes consumed, frames, highest flush id).
        """
    def scrape(self, buffer_ids: Iterable[int], /) -> None: ...
    def adopt_writers(self, buffer_id: int, /) -> None:
        """The producer has died: scrape the writers that it never registered into this buffer."""
    def stats(self) -> dict[str, int]: ...

# --- producer side ----------------------------------------------------------

STALL: Final = 0
DROP: Final = 1
STALL_THEN_DROP: Final = 2

@final
class SendQueue:
    """Every byte that leaves over one connected socket (core/send_queue.h)."""

    def __init__(self, fd: int, limit: int = ...) -> None: ...
    def push(self, frame: bytes | bytearray | memoryview, fd: int = -1) -> bool:
        """Send a frame, header included; False: full or broken, nothing was queued.

        Raises ValueError for a frame above 131072 bytes.
        """
    def invoke(
        self,
        service_id: int,
        method_id: int,
        args: bytes | bytearray | memoryview,
        drop_reply: bool,
        fd: int = -1,
    ) -> int:
        """Send an InvokeMethod frame; returns its request id, 0 if refused."""
    def next_request_id(self) -> int: ...
    def drain(self) -> None:
        """Send what the socket takes now."""
    @property
    def pending(self) -> int:
        """Bytes that wait."""
    @property
    def broken(self) -> bool:
        """The connection is gone, or is the parent process's."""
    @property
    def frames_refused(self) -> int:
        """Attempts that found the queue full or broken (commits try again)."""

@final
class IpcThread:
    """A native thread that polls a descriptor, a socket mostly (core/io_thread.h).

    It drains `queue` at POLLOUT without the GIL, and calls `on_readable()` with
    the GIL when there is input or the peer has gone; once that returns False or
    raises, it reads no more. All signals are blocked in it. `stop()` joins it
    (never from within the callback) and may be followed by another `start()`; it
    must be stopped before a fork. Without a queue the thread ends where it would
    read no more, and is `running` until `stop()` has joined it.
    """

    def __init__(
        self, fd: int, queue: SendQueue | None, on_readable: Callable[[], Any]
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def running(self) -> bool: ...

@final
class Arbiter:
    """Shared memory of one producer, and the way its chunks take to the service."""

    @classmethod
    def in_process(cls, endpoint: ProducerEndpointCore, size: int, page_size: int) -> Arbiter:
        """Private memory; completed chunks are copied by the writing thread."""
    @classmethod
    def over_ipc(
        cls,
        fd: int,
        page_size: int,
        queue: SendQueue,
        service_id: int,
        commit_data: int,
        register_trace_writer: int,
        unregister_trace_writer: int,
        patch_directly: bool = ...,
        batch_bytes: int = ...,
    ) -> Arbiter:
        """Memory from the service; completed chunks go out as CommitData.

        `patch_directly`: chunks that haven't left yet are patched in place, which the service
        has to know of.
        """
    @classmethod
    def emulated(
        cls,
        size: int,
        page_size: int,
        queue: SendQueue,
        service_id: int,
        commit_data: int,
        register_trace_writer: int,
        unregister_trace_writer: int,
        scrapable: bool,
    ) -> Arbiter:
        """Private memory; completed chunks go out inside of CommitData.

        `scrapable`: before a flush is acknowledged, what is being written goes out, too.
        """
    @classmethod
    def unbound(cls, fd: int, page_size: int) -> Arbiter:
        """Memory of our own, before there is a service: chunks wait in it until `bind`."""
    def emulate(self, scrapable: bool, /) -> None:
        """Before `bind`: the memory can't be shared; see `emulated`."""
    def bind(
        self,
        queue: SendQueue,
        service_id: int,
        commit_data: int,
        register_trace_writer: int,
        unregister_trace_writer: int,
        patch_directly: bool = ...,
    ) -> None:
        """Give an unbound arbiter its service; see `over_ipc`.

        What targets a reservation (its number << 16) waits for it to be bound, too.
        """
    def bind_startup_target_buffer(self, reservation: int, target_buffer: int) -> None:
        """Have what targets a reservation go into a buffer, or (0) be discarded.

        Once: a second call changes nothing.
        """
    def flush(self) -> None:
        """Send what is batched."""
    def notify_flush_complete(self, request_id: int, /) -> None:
        """Acknowledge a flush behind all chunks returned so far.

        In process it does nothing: there the endpoint object is told.
        """
    def open_buffer(self, target_buffer: int, /) -> bool:
        """Keep a chunk for what dying writers of this buffer have lost (core/loss_marks.h).

        False: without it.
        """
    def close_buffer(self, target_buffer: int, /) -> None:
        """Give the chunk back, behind all writers of this buffer."""
    def disable(self) -> None:
        """Hand out no more chunks: the service is gone, or this is a fork's child."""
    @property
    def live_writers(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def lost_commits(self) -> int:
        """Chunks that the service could not be told of (a scrape finds them)."""

@final
class TraceWriter:
    """A sequence of packets by one thread into one buffer (core/trace_writer.h)."""

    def __init__(self, arbiter: Arbiter, target_buffer: int, policy: int = ...) -> None: ...
    def write(self, packet: bytes | bytearray | memoryview, /) -> bool:
        """Append one encoded TracePacket. False: dropped and counted."""
    def flush(self) -> None: ...
    def close(self) -> None: ...
    @property
    def writer_id(self) -> int: ...
    @property
    def chunk_id(self) -> int: ...
    @property
    def packets_written(self) -> int: ...
    @property
    def packets_dropped(self) -> int: ...
    @property
    def drop_count(self) -> int: ...

# --- messages ---------------------------------------------------------------

class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...

_WriterMethod: TypeAlias = tuple[str, int, str, bool, Callable[..., Any]]

class MessageWriter:
    """A message that is being written; the methods here know field numbers only.

    See `stretto.protozero.writer`, which adds the classes that know names.
    """

    def __init__(
        self, destination: bytearray | memoryview | _Writable | TraceWriter | None = None
    ) -> None:
        """Start a root message in a destination, by default memory of its own.

        Raises:
            TypeError: nothing can be written there.
            LocalProtocolError: the trace writer is closed or has a packet open.
        """
    def append_varint(self, number: int, value: int, /) -> None:
        """Append an integer as a varint: its low 64 bits."""
    def append_fixed32(self, number: int, value: int, /) -> None:
        """Append the low 32 bits of an integer."""
    def append_fixed64(self, number: int, value: int, /) -> None:
        """Append the low 64 bits of an integer."""
    def append_bytes(self, number: int, data: bytes | bytearray | memoryview | str, /) -> None:
        """Append bytes, a string, or a message that is encoded already."""
    def append_raw(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append fields that are encoded already, tags included."""
    def nested(self, number: int, writer: type[_W], /) -> _W:
        """Open a nested message; it ends with its `with` block, or when this one goes on."""
    def finalize(self) -> None:
        """End this message and those inside it. Doing so again does nothing.

        Raises:
            LocalProtocolError: it doesn't fit into its destination.
            Exception: what the destination's `write` raised.
        """
    def finish(self) -> bytes:
        """End a root message and return it.

        Raises:
            LocalProtocolError: it has ended before, is nested, or has another destination.
        """
    @property
    def size(self) -> int | None:
        """Bytes so far, without those of an open nested message.

        None if another message has taken the place.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exc_info: object) -> None: ...

MAX_WRITER_METHODS: Final = 256

def make_writer_class(
    name: str, methods: list[_WriterMethod], namespace: dict[str, Any], /
) -> type[MessageWriter]:
    """Make a subclass of MessageWriter that can't be changed or subclassed.

    Args:
        name: of the class.
        methods: rows (method, field number, kind, whether packed, helper), at most
            MAX_WRITER_METHODS. The helper normalizes a value that isn't of the
            kind's own type, or raises; that of a message takes nothing and gives
            the class of its writer.
        namespace: what the class has besides; `__slots__` must be empty.
    """

def raise_on_writer_misuse(raises: bool, /) -> bool:
    """Say whether writing to an ended message raises; returns whether it did.

    At first it does under `python -X dev`.
    """

def writer_misuse_count() -> int:
    """How often ended messages were written to, since the process began."""

@final
class DecodedField:
    """A field as it stands on the wire.

    The `as_` methods read it as one type or another. They cut integers to
    their width, and give 0 or nothing if the wire type can't hold such a value:
    a peer may send any type in any field.
    """

    @property
    def number(self) -> int: ...
    @property
    def wire_type(self) -> int:
        """VARINT, FIXED64, DELIMITED or FIXED32 of `stretto.protozero.wire`."""
    @property
    def value(self) -> int:
        """Unsigned; 0 for a delimited field."""
    @property
    def data(self) -> memoryview:
        """The bytes of a delimited field, a view of the input; else empty."""
    def as_uint64(self) -> int: ...
    def as_int64(self) -> int: ...
    def as_uint32(self) -> int: ...
    def as_int32(self) -> int: ...
    def as_sint64(self) -> int: ...
    def as_sint32(self) -> int: ...
    def as_bool(self) -> bool: ...
    def as_float(self) -> float: ...
    def as_double(self) -> float: ...
    def as_bytes(self) -> bytes: ...
    def as_string(self) -> str:
        """The bytes as UTF-8, others as surrogate escapes."""
    def as_message(self) -> Decoder: ...
    def packed_varints(self) -> Iterator[int]:
        """The elements of a packed field; raises DecodeError after the last whole one."""
    def packed_fixed32(self) -> Iterator[int]:
        """As `packed_varints`."""
    def packed_fixed64(self) -> Iterator[int]:
        """As `packed_varints`."""

@final
class Decoder:
    """Iterates the fields of one message, once (see `stretto.protozero.decoder`)."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> DecodedField: ...
    def find(self, number: int, /) -> DecodedField | None:
        """The first field with this number, from the start of the message."""
    @property
    def bytes_left(self) -> int:
        """Bytes that were not read; after iterating, more than 0 means malformed."""
    @property
    def error(self) -> DecodeError | None:
        """Why iteration stops before the end."""

class IndexedMessage:
    """A message with its fields by number (see `stretto.protozero.typed_decoder`)."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None: ...
    def __iter__(self) -> Decoder:
        """All fields, as they stand on the wire."""
    def _last(self, number: int, /) -> DecodedField | None:
        """The last field of a number."""
    def _all(self, number: int, /) -> list[DecodedField]:
        """The fields of a number, in the order of the wire."""
    @property
    def bytes_left(self) -> int:
        """Bytes that couldn't be parsed: more than 0 means malformed from there on."""

@final
class DecoderField:
    """An attribute of generated decoders: a singular field."""

    def __init__(
        self,
        number: int,
        kind: str,
        fallback: object,
        helper: Callable[[], type[IndexedMessage]] | None,
    ) -> None:
        """Describe the field; of a message the helper gives the decoder."""
    def __get__(self, decoder: IndexedMessage | None, _owner: type | None = None) -> Any: ...
    @property
    def number(self) -> int: ...

def merge_known_fields(
    values: dict[str, Any],
    plan: dict[int, list[Any]],
    data: bytes,
    start: int,
    end: int,
    depth: int,
    /,
) -> int:
    """Put the fields of `data[start:end]` into a message's values, as `Message` keeps them.

    Returns the position of the first field that isn't handled: one that is not in the plan
    (see `Layout.read_plan`) or malformed, whose value has to be merged, or that nests too deep.
    """

def close_decoder_class(made: _I, /) -> _I:
    """Make a new subclass of IndexedMessage fast and unchangeable; returns it."""

@final
class Selector:
    """Some fields of a message as a tuple (see `stretto.protozero.selector`)."""

    def __init__(self, columns: int, tree: list[Any]) -> None: ...
    def __call__(self, data: bytes | bytearray | memoryview) -> tuple[Any, ...]: ...

@final
class Tokenizer(Generic[_M]):
    """Splits a stream of messages in pieces (see `stretto.protozero.tokenizer`)."""

    def __init__(
        self,
        make: Callable[[bytes], _M] = ...,
        marker: bytes = b"",
        field: int = 1,
        max_size: int = ...,
    ) -> None:
        """Start a stream.

        Args:
            make: what a message's bytes become; a Selector sees them without a copy.
            marker: after damage, reading goes on behind these bytes.
            field: the number of the repeated field that the messages are.
            max_size: of a message, in bytes; a longer one is damage.
        """
    def append(self, data: bytes | bytearray | memoryview, /) -> Self:
        """Give it the next piece; returns itself.

        Raises LocalProtocolError: messages of the last piece were not read, or
        the stream has ended.
        """
    def end(self) -> Self:
        """Say that no more is to come; returns itself, for what is recovered only now."""
    def count(self) -> int:
        """Go through the messages that are there, and count them."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _M: ...
    @property
    def bytes_left(self) -> int:
        """Bytes that belong to no whole message yet."""
    @property
    def bytes_skipped(self) -> int:
        """Bytes lost to damage."""
    @property
    def errors(self) -> int:
        """How often the stream was damaged."""

# --- track events -----------------------------------------------------------

MAX_INSTANCES: Final = 8
"""Sessions that can record track events at once."""

class _Slice:
    """A context manager: the slice begins at `__enter__` and ends at `__exit__`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc_info: object) -> None: ...

_Flows: TypeAlias = Flow | int | Sequence[Flow | int]

@final
class Category:
    """A named group of events; one object per name, for ever.

    Arguments of events may have any value: int, float, bool, str, list, dict and the like as they
    are, others as their repr. An int that 64 bits with a sign don't hold appears as its digits:
    readers would show it as a negative number. Keys of `args` appear as their str.
    """

    def __new__(
        cls, name: str, description: str | None = None, tags: Sequence[str] | None = None
    ) -> Category:
        """Make or find a category.

        Args:
            name: without quotes, asterisks and spaces.
            tags: at most four; `slow` and `debug` switch it off by default.

        Raises ValueError, TypeError.
        """
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def enabled(self) -> bool:
        """Whether any session records it now."""
    def slice(
        self,
        name: str,
        /,
        *,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
        args: Mapping[str, Any] = ...,
        **arguments: Any,
    ) -> _Slice:
        """Return a context manager that records the time spent in its block as a slice.

        Args:
            name: of the slice.
            track: its row; by default that of the thread, or of the asyncio task.
            flow: flows that go through the beginning of the slice, as `Flow` or by id.
            terminating_flow: flows that end there.
            timestamp: of the beginning, in nanoseconds of `stretto.now()`; by default now.
            args: arguments whose names are also parameters of this method.
            arguments: further arguments of the slice.
        """
    def slice_for_code(self, code: CodeType, /) -> _Slice: ...
    def instant(
        self,
        name: str,
        /,
        *,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
        args: Mapping[str, Any] = ...,
        **arguments: Any,
    ) -> None:
        """Record a point in time. The parameters are those of `slice`."""
    def counter(
        self,
        name: str,
        value: float,
        /,
        *,
        track: Track | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Record a value of a counter.

        Args:
            name: of the counter, which has a row of its own.
            value: an int or a float.
            track: the row below which the counter appears; by default the process.
            timestamp: in nanoseconds of `stretto.now()`; by default now.
        """
    def begin(
        self,
        name: str,
        /,
        *,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
        args: Mapping[str, Any] = ...,
        **arguments: Any,
    ) -> None:
        """Begin a slice that `end` ends. The parameters are those of `slice`.

        Beginnings and ends nest on each track. On a track of its own a slice may end on another
        thread than it began.
        """
    def end(
        self,
        *,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
        args: Mapping[str, Any] = ...,
        **arguments: Any,
    ) -> None:
        """End the latest slice of the track that has begun and not ended.

        The parameters are those of `slice`; arguments are added to those of the beginning.
        """
    def template(
        self, name: str, /, *names: str, args: Mapping[str, Any] = ..., **constants: Any
    ) -> EventTemplate:
        """Prepare events that are recorded often, and differ in a few values only.

        Args:
            name: of the events.
            names: of the arguments that differ, at most six; their values are given to each event.
            args: further constants, whose names collide.
            constants: arguments that are the same for all; int, float, bool and str as they are,
                others as their str is now.

        Raises TypeError, ValueError.
        """
    def traced(self, target: _T) -> _T:
        """Decorate a function, method or class: every call becomes a slice."""
    def empty(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: the measure of a disabled event."""
    def empty_slice(self, *args: Any, **kwargs: Any) -> _Slice: ...
    def set_slot(self, slot: int, enabled: bool) -> None: ...

@final
class EventTemplate:
    """Events of a category that are known but for a few values.

    What is recorded is what the category's own methods would record, for less than half of the
    time. Values come in the order of `names`; those that are None, or not given, are left out.

    None is recorded while its thread records another event: what it tells of may be part of that.
    """

    def slice(
        self,
        *values: Any,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
        within: tuple[ContextVar[Any], Any] = ...,
    ) -> _Slice:
        """A context manager that records the time spent in its block.

        Args:
            within: a context variable, and what it is in the block.
        """
    def instant(
        self,
        *values: Any,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
    ) -> None: ...
    def instant_at_entry(
        self,
        *values: Any,
        track: Track | None = None,
        flow: _Flows | None = None,
        terminating_flow: _Flows | None = None,
        timestamp: int | None = None,
        within: tuple[ContextVar[Any], Any] = ...,
    ) -> _Slice:
        """A context manager that records an instant when it is entered."""

@final
class Track:
    """A row of the timeline, below `parent` or the process.

    Tracks of the same name, parent and `id` are the same row.
    """

    def __init__(self, name: str, *, parent: Track | None = None, id: int = 0) -> None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def parent(self) -> Track | None: ...
    @property
    def uuid(self) -> int: ...

@final
class Flow:
    """An arrow between the events that carry it."""

    def __init__(self, id: int = ...) -> None: ...
    @property
    def id(self) -> int: ...

def flow_id(key: int, index: int, /) -> int:
    """The id of the index-th message between two processes that both know the key.

    64 bits, different for each of 2^64 indexes; both compute it alone.
    """

def in_event() -> bool:
    """Whether the calling thread is recording an event: then it was called by an argument's
    repr, say. For what is used while tracing, and is traced itself."""

@final
class FlowIds:
    """Counts the messages of one end of a channel, and names them (see `stretto.flows.ids`)."""

    used: bool
    """Messages went through, or may have."""

    def __init__(
        self,
        key: Callable[[], int],
        owner: object = None,
        *,
        is_server: bool = False,
        synchronised: bool = True,
        numbered: bool = False,
    ) -> None: ...
    @property
    def owner(self) -> object: ...
    def next(
        self, outgoing: bool, kind: int, txid: int, ordinal: int = 0, answer: int = 0, /
    ) -> int:
        """Count a message; its id, or 0."""
    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0, /) -> None:
        """Count a message that needs no id."""
    def lost(self, outgoing: bool, /) -> None:
        """Messages went uncounted."""
    def forsake(self) -> None:
        """Never give an id again."""

class MessageTemplates:
    """How a method's messages are shown, for a MessageHook.

    Args:
        owner: That of the hook.
    """

    def __init__(self, owner: object) -> None: ...
    @property
    def owner(self) -> object: ...
    def put(self, outgoing: bool, kind: int, template: EventTemplate, /) -> None:
        """The template of a kind, of the values txid, bytes, handles, body, incoming."""

@final
class MessageHook:
    """`sent` or `received` of `stretto.base.rpc_hooks`, for most messages.

    Args:
        owner: Whose channels' and methods' states these are.
        otherwise: Does the same for every message, and gets those that are unusual.
        incoming: Holds the flow of the message that is being handled.
        transport: Shows, if it is on, messages whose method's own category isn't.
        outgoing: It is `sent`.
    """

    def __init__(
        self,
        owner: object,
        otherwise: Callable[..., Any],
        incoming: ContextVar[int],
        transport: Category,
        outgoing: bool,
    ) -> None: ...
    def __call__(self, *args: Any) -> Any: ...

EMPTY_SLICE: Final[_Slice]

def thread_track() -> Track:
    """The track of the calling thread."""

def process_track() -> Track:
    """The track of this process."""

def fixed_track(uuid: int, descriptor: bytes, parent: Track | None = None) -> Track:
    """A track whose TrackDescriptor is encoded already."""

def categories() -> list[Category]: ...
def set_new_category_hook(hook: Callable[[Category], object] | None) -> None: ...
def disable_all_categories() -> None: ...
def set_traced(trace: Callable[[Category, Any], Any]) -> None:
    """What `Category.traced` calls."""

def set_process(uuid: int, descriptor: bytes) -> None: ...
def set_hooks(
    describe_thread: Callable[[str | None], tuple[int, bytes, str] | None],
    current_track: Callable[[], Track | None],
) -> None: ...
def set_current_task(function: Callable[[], object]) -> None:
    """What asyncio has: then the hook `current_track` is called for new tasks only."""

def start_instance(
    slot: int,
    arbiter: Arbiter,
    target_buffer: int,
    policy: int = DROP,
    filter_annotations: bool = False,
) -> None: ...
def stop_instance(slot: int) -> None: ...
def clear_instance(slot: int) -> None: ...
def flush_instance(slot: int) -> None: ...
def instance_counts(slot: int) -> tuple[int, int]:
    """(events written, events lost) since the slot was started."""

def argument_errors() -> int:
    """Arguments that could not be converted, or were wrong, since the process began."""

def raise_on_event_misuse(raises: bool, /) -> bool:
    """Say whether wrong arguments of events raise; returns whether they did.

    At first they do under `python -X dev`, and only while somebody records. Else they are
    counted and left out: the event says so in an annotation named "...".
    """

def after_fork_in_child() -> None: ...

# --- odds and ends ----------------------------------------------------------

def read_tsc() -> int | None:
    """The processor's time stamp counter, or None where there is none."""

def boottime_ns() -> int: ...
def request_key(pairs: Sequence[tuple[object, object]] | None, /) -> int:
    """The 64 bits that the headers of a request name it by; 0: none.

    Looks at `x-stretto-flow`, then `traceparent`, of a tuple or list of (name, value), names in
    lower case; all else is passed over.
    """

def pack_slices(trace: bytes | bytearray | memoryview, start: int, limit: int) -> tuple[bytes, int]:
    """Encode the packets from `start` on as slices of a ReadBuffersResponse.

    Returns the slices, which have at most `limit` bytes, and the position of the first packet
    that didn't fit.
    """

def join_slices(reply: bytes | bytearray | memoryview, start: int) -> tuple[bytes, int]:
    """Decode a ReadBuffersResponse from `start` on, as far as its slices are whole packets.

    Returns trace bytes, and the position of the first field that is something else.
    """

def tokenize(data: bytes | bytearray | memoryview, /) -> tuple[int, int]:
    """Count the packets of a trace; (packets, bytes parsed)."""

def scan_trace(data: bytes | bytearray | memoryview, /) -> tuple[int, int, int, list[bytes]]:
    """Count what a trace holds: (track events, drops, bytes parsed, its TrackDescriptors).

    A drop is a place where events are missing because shared memory was full. Stops at
    whatever is no whole packet.
    """

def timer_fd() -> int:
    """A timer as a descriptor, which is the caller's: readable once its time has come."""

def set_timer_fd(fd: int, ms: int, /) -> None:
    """Have the time of a `timer_fd` come in so many ms from now, once; it isn't readable before.

    Raises OSError if it is no timer (any more).
    """

def call_untraced(function: Callable[..., _T], /, *args: Any) -> _T:
    """Return `function(*args)`; function tracing records none of the calls in it."""

def open_watch() -> int:
    """A descriptor that is readable when a watched file was opened (inotify); the caller's."""

def watch_opens(watch: int, path: str) -> None:
    """Have an `open_watch` watch one more file, whoever opens it, to execute it as well."""

def add_pending_call(function: Callable[[], Any], /) -> None:
    """Have the main thread call it at its next safe moment.

    For work that must not be done inside a hook, such as starting a thread after
    a fork. What it raises goes to `sys.unraisablehook`. Raises RuntimeError when
    too many calls are pending, and outside the main interpreter.
    """
