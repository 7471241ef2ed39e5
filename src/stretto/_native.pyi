"""Types of the native data path (native/bind over native/core).

Every class here owns native memory; none of them deals with sockets' addresses, sessions or
configs. Sizes are bytes, times nanoseconds of CLOCK_BOOTTIME, ids as in `stretto.base.ids`.

The file is long because an extension module has one stub. It has a section for each part of
`native/bind`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, final

from stretto.base.errors import DecodeError

_I = TypeVar("_I", bound=type[IndexedMessage])
_M = TypeVar("_M", default=bytes)
_T = TypeVar("_T")
_W = TypeVar("_W", bound=MessageWriter)

RING: Final = 1
DISCARD: Final = 2

@final
class BufferTable:
    """The trace buffers of one service, by global buffer id."""

    def __init__(self) -> None: ...
    def create(self, buffer_id: int, size: int, policy: int, fd: int = -1) -> None:
        """Create a buffer; if `fd` >= 0, its memory is that file (for recovery).

        Raises ValueError (id in use, size 0), MemoryError, OSError.
        """
    def remove(self, buffer_id: int, /) -> None: ...
    def set_producer(
        self, buffer_id: int, producer_id: int, uid: int, pid: int, machine_id: int = 0
    ) -> None: ...
    def stats(self, buffer_id: int, /) -> dict[str, int]:
        """Return `st_buffer_stats` by field name, plus `buffer_size` and `unread`."""
    def visit_writers(
        self,
        buffer_id: int,
        visit: Callable[[int, int, tuple[int, ...], tuple[int, ...]], object],
        /,
    ) -> None:
        """Call `visit` for each writer of a buffer, in the order of their first chunks.

        Its arguments are the producer id, the writer id, counts and sums. `counts` has the number
        of complete chunks by payload size, in 11 buckets with the upper bounds 8, 32, 128, 512,
        1024, 2048, 4096, 8192, 12288, 16384 bytes and infinity; `sums` has the total payload of
        each bucket.
        """
    def set_watermark(self, buffer_id: int, eventfd: int, unread_bytes: int) -> None:
        """Write to `eventfd` whenever more than `unread_bytes` bytes are unread.

        The descriptor stays the caller's; set -1 before closing it.
        """
    def clone(self, source_id: int, clone_id: int) -> None:
        """Copy a buffer, read position included. Raises ValueError, MemoryError."""
    def exchange(self, buffer_id: int, other_id: int) -> None:
        """Swap the contents of two buffers; writers are not affected."""
    def recover(self, buffer_id: int, fd: int) -> None:
        """Create a buffer from the ring in a file of an ended process. Raises ValueError."""

@final
class Readback:
    """The reading state of a session: its sequence ids and packet counters."""

    def __init__(self, table: BufferTable, machine_id: int = 0) -> None: ...
    def begin(self, buffer_id: int, /) -> None:
        """Start a read pass over a buffer."""
    def read(self, buffer_id: int, limit: int) -> tuple[bytes, bool]:
        """Return packets of the pass, and whether the pass has more packets.

        The packets are trace bytes (`0a`, length, packet, repeated), about `limit` bytes in total.
        Releases the GIL.
        """
    def sequence_id(self, producer_id: int, writer_id: int) -> int: ...
    def copy(self) -> Readback:
        """Return a copy of the state, for reading clones of the buffers."""
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
            string_filter: called with each string to be rewritten, and its semantic type; returns a
                string of the same length, or None to keep it.

        Raises ValueError: the message says what is wrong with the bytecode.
        """
    def set_root(self, path: Sequence[int], /) -> None:
        """Filter messages that are reached from message 0 through these fields.

        Raises ValueError if one of the fields isn't a nested message.
        """
    def query(self, message: int, field: int) -> tuple[str, int] | None:
        """Return the rule for a field, by the numbers of message and field; None if it is denied.

        The rule is ("simple", 0), ("nested", number of the message) or ("string", semantic type).
        """
    @property
    def messages(self) -> int:
        """The number of messages that the bytecode describes."""
    def filter(self, data: bytes | bytearray | memoryview, /) -> bytes | None:
        """Filter one message; return None if the message is malformed."""
    def filter_trace(
        self, trace: bytes | bytearray | memoryview, /
    ) -> tuple[bytes, int, int, int, int]:
        """Filter each packet of a trace.

        Returns the trace; the numbers of packets and of malformed packets; the total size of the
        packets, without their frames, before and after filtering.

        A malformed packet becomes an empty one. Raises ValueError if the trace isn't a sequence of
        whole packets, and any exception of the string filter.
        """

@final
class ProducerEndpointCore:
    """The service's side of one producer's data path (core/producer_endpoint.h)."""

    def __init__(self, table: BufferTable, producer_id: int) -> None: ...
    def attach_fd(self, fd: int, size: int, page_size: int) -> None:
        """Map the producer's shared memory, once (the descriptor stays the caller's).

        Raises ValueError unless the descriptor is a memfd of at least that size, sealed against
        shrinking, with a page size and layout that Perfetto allows.
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
        """Handle the CommitData frames at the start of `data` that request no reply.

        Stops at the first frame that has another method, requests a reply or is incomplete. Returns
        (bytes consumed, frames, highest flush id).
        """
    def scrape(self, buffer_ids: Iterable[int], /) -> None: ...
    def adopt_writers(self, buffer_id: int, /) -> None:
        """Scrape a dead producer's unregistered writers into this buffer."""
    def stats(self) -> dict[str, int]: ...

STALL: Final = 0
DROP: Final = 1
STALL_THEN_DROP: Final = 2

@final
class SendQueue:
    """The queue of all bytes that are sent over one connected socket (core/send_queue.h)."""

    def __init__(self, fd: int, limit: int = ...) -> None: ...
    def push(self, frame: bytes | bytearray | memoryview, fd: int = -1) -> bool:
        """Send a frame with its header. Returns False if the queue is full or broken.

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
        """Send an InvokeMethod frame; returns its request id, 0 if the queue refused it."""
    def next_request_id(self) -> int: ...
    def drain(self) -> None:
        """Send as many bytes as the socket accepts now."""
    @property
    def pending(self) -> int:
        """The number of queued bytes."""
    @property
    def broken(self) -> bool:
        """Whether the connection is closed, or belongs to the parent process."""
    @property
    def frames_refused(self) -> int:
        """The number of frames refused by the full or broken queue (commits are retried)."""

@final
class IpcThread:
    """A native thread that polls a descriptor, usually a socket (core/io_thread.h).

    The thread drains `queue` at POLLOUT without the GIL, and calls `on_readable()` with the GIL
    when there is input or the peer has disconnected. If `on_readable()` returns False or raises,
    the thread stops reading. All signals are blocked in the thread. `stop()` joins the thread
    (never from within the callback) and may be followed by another `start()`. Call `stop()` before
    a fork. A thread without a queue ends when it stops reading, and is `running` until `stop()` has
    joined it.
    """

    def __init__(
        self, fd: int, queue: SendQueue | None, on_readable: Callable[[], Any]
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def ask_to_stop(self) -> None:
        """Ask the thread to end, without waiting for it; `stop()` must follow."""
    @property
    def running(self) -> bool: ...

@final
class Arbiter:
    """The shared memory of one producer, and the transport of its chunks to the service."""

    @classmethod
    def in_process(cls, endpoint: ProducerEndpointCore, size: int, page_size: int) -> Arbiter:
        """Return an arbiter with private memory.

        A thread that completes a chunk copies it into the trace buffer.
        """
    @classmethod
    def unbound(cls, fd: int, page_size: int, size: int = 0) -> Arbiter:
        """Return an arbiter that keeps its chunks until `bind` connects it to a service.

        The chunks are in the file `fd`, or in private memory of `size` bytes if `fd` is -1.
        """
    def emulate(self, scrapable: bool, /) -> None:
        """Send completed chunks inside of CommitData: the memory isn't shared with the service.

        Call it before `bind`. `scrapable`: incomplete chunks are also sent before a flush is
        acknowledged.
        """
    def bind(
        self,
        queue: SendQueue,
        service_id: int,
        commit_data: int,
        register_trace_writer: int,
        unregister_trace_writer: int,
        patch_directly: bool = ...,
    ) -> None:
        """Connect an unbound arbiter to its service; completed chunks are sent as CommitData.

        The target buffer of a chunk may be a reservation (the reservation's number << 16). Such a
        chunk is not sent until the reservation is bound to a buffer. With `patch_directly`, chunks
        that haven't been sent yet are patched in place: only for services that support this.
        """
    def bind_startup_target_buffer(self, reservation: int, target_buffer: int) -> None:
        """Send the chunks of a reservation to a buffer, or discard them (`target_buffer` 0).

        Only the first call for a reservation has an effect.
        """
    def flush(self) -> None:
        """Send the batched commits."""
    def notify_flush_complete(self, request_id: int, /) -> None:
        """Acknowledge a flush. The service first receives all chunks that were returned.

        No effect in process: there the flush is acknowledged through the endpoint object.
        """
    def open_buffer(self, target_buffer: int, /) -> bool:
        """Reserve a chunk that marks losses of exiting writers of this buffer (core/loss_marks.h).

        Returns False if no chunk is free.
        """
    def close_buffer(self, target_buffer: int, /) -> None:
        """Return the chunk that `open_buffer` reserved; call it after the buffer's last writer."""
    def disable(self) -> None:
        """Stop providing chunks: the service has ended, or this is the child of a fork."""
    @property
    def live_writers(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def lost_commits(self) -> int:
        """The number of chunks whose commit could not be sent. A scrape finds these chunks."""

@final
class TraceWriter:
    """A sequence of packets, written by one thread into one buffer (core/trace_writer.h)."""

    def __init__(self, arbiter: Arbiter, target_buffer: int, policy: int = ...) -> None: ...
    def write(self, packet: bytes | bytearray | memoryview, /) -> bool:
        """Append one encoded TracePacket. Returns False if the packet was dropped. Drops are
        counted."""
    def write_all(self, packets: bytes | bytearray | memoryview, /) -> None:
        """Append packets, which are encoded as a trace. Drops are counted."""
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

class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...

_WriterMethod: TypeAlias = tuple[str, int, str, bool, Callable[..., Any]]

class MessageWriter:
    """A message that is being written; its methods take field numbers.

    `stretto.protozero.writer` adds the classes with methods by field names.
    """

    def __init__(
        self, destination: bytearray | memoryview | _Writable | TraceWriter | None = None
    ) -> None:
        """Start a root message in a destination, by default memory of its own.

        Raises:
            TypeError: `destination` can't be written to.
            LocalProtocolError: the trace writer is closed or has a packet open.
        """
    def append_varint(self, number: int, value: int, /) -> None:
        """Append an integer as a varint: its low 64 bits."""
    def append_fixed32(self, number: int, value: int, /) -> None:
        """Append the low 32 bits of an integer."""
    def append_fixed64(self, number: int, value: int, /) -> None:
        """Append the low 64 bits of an integer."""
    def append_bytes(self, number: int, data: bytes | bytearray | memoryview | str, /) -> None:
        """Append bytes, a string, or an encoded message."""
    def append_raw(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append encoded fields, tags included."""
    def nested(self, number: int, writer: type[_W], /) -> _W:
        """Open a nested message, which ends with its block or at the outer message's next field."""
    def finalize(self) -> None:
        """End this message and its open nested messages. Idempotent.

        Raises:
            LocalProtocolError: the message doesn't fit into its destination.
            Exception: any exception of the destination's `write`.
        """
    def finish(self) -> bytes:
        """End a root message and return it.

        Raises:
            LocalProtocolError: the message has ended already, is nested, or has another
                destination.
        """
    @property
    def size(self) -> int | None:
        """The number of bytes so far, without those of an open nested message.

        None if a newer message is being written to the destination.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exc_info: object) -> None: ...

MAX_WRITER_METHODS: Final = 256

def make_writer_class(
    name: str, methods: list[_WriterMethod], namespace: dict[str, Any], /
) -> type[MessageWriter]:
    """Make a subclass of MessageWriter that can't be changed or subclassed.

    Args:
        name: the name of the class.
        methods: rows (method, field number, kind, whether packed, helper), at most
            MAX_WRITER_METHODS. For a message field, the helper takes no argument and returns the
            class of the nested writer. For others it converts a value that isn't of the field's
            type, or raises.
        namespace: further members of the class; `__slots__` must be empty.
    """

def raise_on_writer_misuse(raises: bool, /) -> bool:
    """Set whether writing to an ended message raises; return the previous setting.

    The default is True under `python -X dev`, else False.
    """

def writer_misuse_count() -> int:
    """Return how often ended messages were written to, since the process began."""

@final
class DecodedField:
    """A field in its encoded form.

    The `as_` methods convert the field to a type. They truncate integers to the width of that type.
    If the field's wire type doesn't fit that type, they return 0 or an empty value: a peer may send
    any wire type in any field.
    """

    @property
    def number(self) -> int: ...
    @property
    def wire_type(self) -> int:
        """The wire type: VARINT, FIXED64, DELIMITED or FIXED32 of `stretto.protozero.wire`."""
    @property
    def value(self) -> int:
        """The value as an unsigned integer; 0 for a delimited field."""
    @property
    def data(self) -> memoryview:
        """The bytes of a delimited field, as a view of the input; empty for other fields."""
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
        """Decode the bytes as UTF-8; invalid bytes become surrogate escapes."""
    def as_message(self) -> Decoder: ...
    def packed_varints(self) -> Iterator[int]:
        """Iterate over a packed field's elements. Raises DecodeError if the last is incomplete."""
    def packed_fixed32(self) -> Iterator[int]:
        """Like `packed_varints`, for 32-bit elements."""
    def packed_fixed64(self) -> Iterator[int]:
        """Like `packed_varints`, for 64-bit elements."""

@final
class Decoder:
    """An iterator over the fields of one message (see `stretto.protozero.decoder`)."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> DecodedField: ...
    def find(self, number: int, /) -> DecodedField | None:
        """Return the first field with this number, searching from the start of the message."""
    @property
    def bytes_left(self) -> int:
        """The number of bytes that were not read; after iterating, more than 0 means malformed."""
    @property
    def error(self) -> DecodeError | None:
        """The reason why iteration stopped before the end; None if it did not."""

class IndexedMessage:
    """A message whose fields are indexed by number (see `stretto.protozero.typed_decoder`)."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None: ...
    def __iter__(self) -> Decoder:
        """Iterate over all fields, in their encoded form."""
    def _last(self, number: int, /) -> DecodedField | None:
        """Return the last field with this number."""
    def _all(self, number: int, /) -> list[DecodedField]:
        """Return all fields with this number, in the order of the message."""
    @property
    def bytes_left(self) -> int:
        """The number of bytes at the end that couldn't be parsed, because they are malformed."""

@final
class DecoderField:
    """A Python descriptor in the classes of generated decoders: it reads a singular field."""

    def __init__(
        self,
        number: int,
        kind: str,
        fallback: object,
        helper: Callable[[], type[IndexedMessage]] | None,
    ) -> None:
        """Describe the field; for a message field, `helper` returns its decoder class."""
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
    """Parse the fields of `data[start:end]` into `values`, the `__dict__` of a `Message`.

    Returns the position of the first field that isn't handled. Such a field is not in the plan, is
    malformed, has to be merged, or is nested too deep. `Layout.plan` makes the plan.
    """

def varint(value: int, /) -> bytes:
    """Encode a value from 0 to 2**64 - 1 in as few bytes as possible."""

def tag(number: int, wire_type: int, /) -> bytes:
    """Encode the tag of a field."""

def varint_field(number: int, value: int, /) -> bytes:
    """Encode a complete field of wire type 0; negative values as 64-bit two's complement."""

def bytes_field(number: int, data: bytes | bytearray | memoryview, /) -> bytes:
    """Encode a complete field of wire type 2."""

def close_decoder_class(made: _I, /) -> _I:
    """Optimize a new subclass of IndexedMessage, and make it immutable; return it."""

@final
class Selector:
    """Extracts some fields of a message as a tuple (see `stretto.protozero.selector`)."""

    def __init__(self, columns: int, tree: list[Any]) -> None: ...
    def __call__(self, data: bytes | bytearray | memoryview) -> tuple[Any, ...]: ...

@final
class Tokenizer(Generic[_M]):
    """Splits a stream into messages, block by block (see `stretto.protozero.tokenizer`)."""

    def __init__(
        self,
        make: Callable[[bytes], _M] = ...,
        marker: bytes = b"",
        field: int = 1,
        max_size: int = ...,
    ) -> None:
        """Start a stream.

        Args:
            make: converts a message's bytes to an item; a Selector gets them without a copy.
            marker: after damage, reading continues behind these bytes.
            field: the number of the repeated field that holds the messages.
            max_size: the largest size of a message, in bytes; a longer one counts as damage.
        """
    def append(self, data: bytes | bytearray | memoryview, /) -> Self:
        """Add the next block; returns the tokenizer.

        Raises LocalProtocolError: messages of the last block were not read, or the stream has
        ended.
        """
    def end(self) -> Self:
        """End the stream; return the tokenizer, from which more messages may be read now."""
    def count(self) -> int:
        """Skip the available messages, and return their number."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _M: ...
    @property
    def bytes_left(self) -> int:
        """The number of bytes at the end that don't form a whole message yet."""
    @property
    def bytes_skipped(self) -> int:
        """The number of bytes lost by damage."""
    @property
    def errors(self) -> int:
        """The number of damaged places."""

MAX_INSTANCES: Final = 8
"""The number of sessions that can record track events at the same time."""

class _Slice:
    """A context manager for a slice that begins at `__enter__` and ends at `__exit__`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc_info: object) -> None: ...

_Flows: TypeAlias = Flow | int | Sequence[Flow | int]

@final
class Category:
    """A named group of events; one object per name, for the lifetime of the process.

    Arguments of events may have any value: int, float, bool, str, list and dict are recorded with
    their type, values of other types as their repr. An int outside of the signed 64-bit range is
    recorded as a string of its digits: readers would show it as a negative number. Keys of `args`
    are recorded as their str.
    """

    def __new__(
        cls, name: str, description: str | None = None, tags: Sequence[str] | None = None
    ) -> Category:
        """Return the category of this name; create it if it doesn't exist.

        Args:
            name: without quotes, asterisks and spaces.
            tags: at most four; `slow` and `debug` disable the category by default.

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
        """Whether any session records this category now."""
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
            name: the name of the slice.
            track: the row of the slice; by default that of the thread, or of the asyncio task.
            flow: flows that go through the beginning of the slice, as `Flow` or by id.
            terminating_flow: flows that end at the slice.
            timestamp: the time of the beginning, in nanoseconds of `stretto.now()`; by default now.
            args: arguments whose names are also parameters of this method.
            arguments: further arguments of the slice.
        """
    def _slice_for_code(self, code: CodeType, /) -> _Slice: ...
    def log_message(
        self,
        name: str,
        message: str,
        priority: int,
        file: str,
        function: str,
        line: int,
        /,
        *,
        track: Track | None = None,
        timestamp: int | None = None,
        args: Mapping[str, Any] = ...,
        **arguments: Any,
    ) -> None:
        """Record a log message with its source location.

        Args:
            name: the name of the event.
            message: at most 16 KiB of it are recorded.
            priority: as in Android's log: 3 debug, 4 info, 5 warning, 6 error, 7 fatal.
        """
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
        unit: str | None = None,
        track: Track | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Record a value of a counter.

        Args:
            name: the name of the counter, which has its own row.
            value: an int or a float.
            unit: its unit, such as "bytes", "ns" or "requests"; the first call of a name decides.
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

        Beginnings and ends nest on each track. With `track`, a slice may begin and end on different
        threads.
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
        """End the innermost slice that is open on the track.

        The parameters are those of `slice`. The slice has the arguments of `begin` and of `end`.
        """
    def template(
        self, name: str, /, *names: str, args: Mapping[str, Any] = ..., **constants: Any
    ) -> EventTemplate:
        """Prepare events that are recorded often and differ only in a few values.

        Args:
            name: the name of the events.
            names: names of the arguments that differ, at most six; their values are passed for each
                event.
            args: further constants, whose names are also parameters of this method.
            constants: arguments that are the same for all events; int, float, bool and str are
                recorded with their type, values of other types as their current str.

        Raises TypeError, ValueError.
        """
    def _trace_calls(self, wrapper: _T, /) -> _T:
        """Make native code execute the calls of a wrapper from `@traced`; return the wrapper."""

    def _call_traced(
        self, function: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> _T:
        """Call a Python function, and record the call as a slice."""

    def traced(self, target: _T) -> _T:
        """Decorate a function, method or class: every call becomes a slice."""
    def _empty(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: a baseline for measuring the cost of a disabled event."""
    def _empty_slice(self, *args: Any, **kwargs: Any) -> _Slice: ...
    def _set_slot(self, slot: int, enabled: bool) -> None: ...

@final
class EventTemplate:
    """Prepared events of a category, whose arguments differ only in a few values.

    These events are recorded as by the category's own methods, in less than half of the time.
    Values are passed in the order of `names`; values that are None or missing are left out.

    While a thread records an event, templates record nothing on this thread: recording that event
    may have caused the call of the template.
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
        """Return a context manager that records the time spent in its block.

        Args:
            within: a context variable, and its value inside the block.
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
        """Return a context manager that records an instant when it is entered."""

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
    """A flow: the UI draws an arrow between the events that have the same flow."""

    def __init__(self, id: int = ...) -> None: ...
    @property
    def id(self) -> int: ...

def flow_id(key: int, index: int, /) -> int:
    """Return the id of the index-th message between two processes that have the same key.

    It has 64 bits, and differs for each of 2^64 indexes. Both processes compute it without
    communication.
    """

def in_event() -> bool:
    """Whether this thread is recording an event, and the current function is called for that event.

    For example, the repr of an argument is called while its event is recorded. Functions that are
    used by tracing, and traced themselves, need this test.
    """

@final
class FlowIds:
    """Counts the messages of one end of a channel, and computes their ids (`stretto.flows.ids`)."""

    used: bool
    """Whether messages were sent or received, or may have been."""

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
        """Count a message; return the id of its flow, or 0 if the message has no flow."""
    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0, /) -> None:
        """Count a message that needs no id."""
    def lost(self, outgoing: bool, /) -> None:
        """Record that an unknown number of messages was not counted."""
    def disable(self) -> None:
        """Make `next` return 0 from now on."""

class MessageTemplates:
    """The event templates of a method's messages, for a MessageHook.

    Args:
        owner: the owner of the hook.
    """

    def __init__(self, owner: object) -> None: ...
    @property
    def owner(self) -> object: ...
    def put(self, outgoing: bool, kind: int, template: EventTemplate, /) -> None:
        """Set the template for a kind of message.

        The values of the template are txid, bytes, handles, body and incoming."""

@final
class MessageHook:
    """The fast path of the hooks `sent` and `received` of `stretto.base.rpc_hooks`.

    Args:
        owner: the owner of the channels' and methods' states.
        otherwise: the general implementation, called for unusual messages.
        incoming: the context variable with the flow of the message being handled.
        transport: a category that records the messages of all methods, whatever their category.
        outgoing: True for `sent`, False for `received`.
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
    """Return the track of the calling thread."""

def process_track() -> Track:
    """Return the track of this process."""

def fixed_track(uuid: int, descriptor: bytes, parent: Track | None = None) -> Track:
    """Return a track with an encoded TrackDescriptor."""

def categories() -> list[Category]: ...
def set_new_category_hook(hook: Callable[[Category], object] | None) -> None: ...
def disable_categories(kept: int | None, /) -> list[Category]:
    """Disable all categories in all slots, except those of one slot.

    Args:
        kept: the slot whose categories stay enabled, in the first slot from now on; None for no
            slot.

    Returns:
        The categories that were enabled before the call, and are disabled now.
    """

def set_traced(trace: Callable[[Category, Any], Any]) -> None:
    """Set the implementation of `Category.traced`."""

def set_process(uuid: int, descriptor: bytes) -> None: ...
def plan_child(
    slot: int | None,
    ms: int,
    run: Callable[[], object],
    hooks: tuple[Callable[[], object], ...],
    otherwise: Callable[[], object],
    /,
) -> None:
    """Set what `begin_child` does in the child of the next fork.

    Args:
        slot: the slot whose categories stay enabled, in the first slot from then on; None if the
            child postpones nothing.
        ms: the longest time until the postponed work is done.
        run: does the postponed work.
        hooks: native functions, called at the end.
        otherwise: called instead of all this if nothing is postponed, or if a category is enabled
            in other slots only.
    """

def begin_child() -> None:
    """Do the first work of a forked child as planned; `is_postponed` is true from then on."""

def is_postponed() -> bool:
    """Whether this process has postponed work that isn't done."""

def set_postponed(value: bool, /) -> None: ...
def end_process(
    silence: Callable[[], object], modules: frozenset[str], otherwise: Callable[[], object], /
) -> None:
    """End the recording of a process that has postponed work; the work is not done.

    Args:
        silence: a native function that ends the function tracing.
        modules: further modules to hide (`hide_modules`).
        otherwise: called instead if no work is postponed.
    """

def call_after(ms: int, function: Callable[[], object], /) -> None:
    """Call a function once, after `ms` milliseconds, on a new thread.

    There is at most one such call: an earlier one is cancelled first, as by `cancel_call`.
    """

def cancel_call() -> None:
    """Cancel the call that `call_after` has planned. If it has begun, wait until it has ended."""

def drop_call() -> None:
    """Cancel the call at the end of the process, like `cancel_call`, but leave its thread.

    The thread ends at the time of the call, if the process has not ended before.
    """

def call_with_last_error(function: Callable[[BaseException], object], /) -> None:
    """Call a function with `sys.last_value`, if there is one, as an untraced call."""

def keep(object: object, /) -> None:
    """Keep the object until the process ends; from CPython 3.12 on, it is immortal."""

def hide_modules(others: frozenset[str], /) -> None:
    """Keep the modules of Stretto and those named in `others`; set them to None in `sys.modules`.

    The interpreter's end doesn't free them then, which would take a millisecond.
    """

def exempt_since(first: list[Any], /) -> bool:
    """Exempt the objects that were created after `first` from garbage collections.

    The collector must have been disabled since, without `gc.freeze`, and no other thread may have
    run.

    Args:
        first: A list that `gc.get_stats` has returned.

    Returns:
        Whether they are exempt. They aren't if there was a collection meanwhile, or if this build
        of CPython is free-threaded.
    """

def exempt_between(first: list[Any], last: list[Any], /) -> bool:
    """Exempt the objects that were created after `first` and before `last` from collections.

    The collector must have been disabled between them, without `gc.freeze`, and no other thread may
    have run there. What was created later is not exempted.

    Args:
        first: A list that `gc.get_stats` has returned.
        last: Another one, made later.

    Returns:
        Whether they are exempt. They aren't if there was a collection since `first`, or if this
        build of CPython is free-threaded.
    """

def keep_exempt(containers: bool, /) -> None:
    """Make the functions, classes and modules immortal that are exempt now.

    From CPython 3.12 on nothing counts references to them, so their use in a forked child copies no
    page, and the end of the process frees none. On free-threaded builds nothing is exempt.

    Args:
        containers: Whether dicts, lists and tuples are made immortal, too. They keep what they
            hold: an open file in one of them is never closed.
    """

def are_current(folder: str, modules: tuple[Any, ...], latest: float, /) -> bool:
    """Return whether the sources of a bundle's modules are those of which it was made.

    Args:
        folder: The folder of the package.
        modules: Tuples of name, file in the folder, whether it is a package, size, code.
        latest: A file that was written later is another one, in seconds since 1970.

    Raises:
        OSError: The folder can't be opened.
    """

def unmarshal(fd: int, start: int, /) -> Any:
    """Return the object that a file has, in the format of `marshal`, from the offset `start` on.

    The file is mapped, not read: it must not be truncated meanwhile.

    Raises:
        OSError: The file can't be mapped.
        EOFError: There is nothing at `start`, or the object is cut off.
    """

def describe_process() -> None:
    """Call the hook `describe_process` if the description is that of the parent, after a fork."""

def set_hooks(
    describe_process: Callable[[], object],
    describe_thread: Callable[[str | None], tuple[int, bytes, str, object] | None],
    current_track: Callable[[], Track | None],
    soon: list[Callable[[], object]],
    /,
) -> None:
    """Set the hooks of track events.

    Args:
        describe_process: describes this process.
        describe_thread: describes the calling thread if its name is no longer the argument.
        current_track: returns the track of the running task.
        soon: while this list has entries, `describe_thread` is called whatever the thread's name.
    """

def set_current_task(
    function: Callable[[], object], python_function: Callable[[], object] | None, /
) -> None:
    """Set asyncio's functions that return the running task.

    Native code then finds the tracks of known tasks by itself, and calls the hook `current_track`
    only for new tasks.

    Args:
        function: `asyncio.current_task`.
        python_function: a function that returns running tasks of the Task class that is written
            in Python; None if `function` returns these tasks, too.
    """

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
def renamed_threads(slot: int) -> list[bytes]:
    """Return the encoded TrackDescriptors of threads that got another name after their description.

    Args:
        slot: The slot of the session that ends. Threads that have ended are returned once for each
            slot that ran when they ended.
    """

def instance_counts(slot: int) -> tuple[int, int]:
    """Return (events written, events lost) of a session's slot, since the session started."""

def argument_errors() -> int:
    """Return the number of arguments that could not be recorded since the process began."""

def raise_on_event_misuse(raises: bool, /) -> bool:
    """Set whether wrong arguments of events raise; return the previous setting.

    The default is True under `python -X dev`, else False. Arguments are only checked while a
    session records. Without raising, wrong arguments are counted and left out: the event gets an
    annotation named "..." that reports the error.
    """

def after_fork_in_child() -> None: ...
def read_tsc() -> int | None:
    """Return the processor's time stamp counter; None if there is none."""

def boottime_ns() -> int: ...
def request_key(pairs: Sequence[tuple[object, object]] | None, /) -> int:
    """Return the 64-bit key of a request from its headers; 0 if there is none.

    The key is in `x-stretto-flow`, or else in `traceparent`. Other headers are ignored.

    Args:
        pairs: A tuple or list of (name, value). The names must be in lower case.
    """

def pack_slices(trace: bytes | bytearray | memoryview, start: int, limit: int) -> tuple[bytes, int]:
    """Encode the packets from `start` on as slices of a ReadBuffersResponse.

    Returns the slices, which have at most `limit` bytes, and the position of the first packet
    that didn't fit.
    """

def join_slices(reply: bytes | bytearray | memoryview, start: int) -> tuple[bytes, int]:
    """Decode a ReadBuffersResponse from `start` on, as long as its slices are whole packets.

    Returns trace bytes, and the position of the first field that isn't such a slice.
    """

def syscall_names(machine: str, /) -> list[str | None]:
    """Return the names of system calls by number, like `sys_read`; None where none is known.

    Args:
        machine: The architecture, as uname() names it. The list is empty for unknown ones.
    """

class TraceImporter:
    """Reads a trace, of TracePackets or Chrome's JSON, into tables with Perfetto's columns.

    Args:
        inflate: decompresses the packets in a `compressed_packets` field.
    """

    def __new__(cls, inflate: Callable[[bytes], bytes]) -> Self: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> None:
        """Read the next bytes of the trace.

        Raises:
            LocalProtocolError: The trace is complete, or another thread is feeding it.
        """

    def has_packets(self) -> bool:
        """Return whether the file consists of packets, and is not of another format.

        It is known from the first bytes of the file that were fed.
        """

    def cut_off(self) -> None:
        """Mark the end of the trace as missing: in the table stats, `stretto_cut_off` is 1."""

    def keep_raw_events(self) -> None:
        """Fill the tables of raw events, too; called before the first bytes."""

    def next_file(self) -> None:
        """End a file of an archive: the next bytes begin another one of the same trace."""

    def finish(self) -> None:
        """Parse the events, and complete the tables."""

    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables, without those of raw events."""

    def raw_events(self) -> int:
        """Return the number of raw events in the trace, whether their tables are filled or not."""

    def rows(self, table: str, /) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return the names of a table's columns, and its rows."""

    def arrow(self, table: str, /) -> ArrowTable:
        """Return a table for libraries that read Arrow data; the rows aren't copied."""

    def slice_totals(
        self, grouping: Literal["function", "category", "track", "task"], /
    ) -> tuple[
        int,
        int,
        list[
            tuple[str | None, str | None, int, int, int, int, int, int, int, int, int, str | None]
        ],
    ]:
        """Return the first and last timestamp, and the totals of groups of slices.

        A row has category, name, track, count, total, self, p50, p90, p99, maximum and CPU time,
        in ns, and the source file of a function. The total counts recursion once. By task, slices
        on the own tracks of threads are one group without a name.
        """

    def slices_named(self, name: str, /) -> list[tuple[int, int, int, int, dict[str, Any]]]:
        """Return the slices with a name, by time.

        A row has timestamp and duration in ns (-1 if the slice isn't finished, 0 for an instant),
        the id of its track, that of its first flow (0 without one), and its arguments by key, such
        as `debug.line`.
        """

    def slices_with_argument(self, key: str, /) -> list[tuple[int, int, int, int, dict[str, Any]]]:
        """Return the slices with an argument, by time, like `slices_named`."""

    def heap_classes(self) -> list[tuple[int, int, str | None, int, int, int]]:
        """Return the classes of all heap graphs, of their objects that can be reached from a root.

        A row has upid, timestamp, name, number of objects, their size and what they retain, in
        bytes: what would be free without them.
        """

    def sample_hits(self) -> list[tuple[int, int, int, str, int]]:
        """Return how many rows of `perf_sample` have a thread, a stack and a period.

        A row has utid, callsite_id, the period (0 where the trace doesn't tell it), the counter
        that the period is of, such as `cpu-clock`, and the number of samples.
        """

class ArrowTable:
    """A table with the methods of Arrow's PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def tokenize(data: bytes | bytearray | memoryview, /) -> tuple[int, int]:
    """Count the packets of a trace; return (packets, bytes parsed)."""

def scan_trace(
    data: bytes | bytearray | memoryview, /
) -> tuple[int, int, int, int, int, list[bytes], list[bytes]]:
    """Return the contents of a trace.

    They are (track events, drops, time, interned texts of log messages, bytes parsed, packets
    compressed by deflate, TrackDescriptors).

    The time is the timestamp of the first packet after which the events of some sequence can be
    read; 2**64 - 1 if there is no such packet. A drop is a place where events are missing because
    shared memory was full. Scanning stops at the first byte that doesn't belong to a whole packet.
    """

def source_reports(
    data: bytes | bytearray | memoryview, notes: int, /
) -> tuple[int, list[bytes], list[bytes], list[bytes], list[bytes]]:
    """Return what data sources tell about themselves in a trace.

    They are (bytes parsed, packets compressed by deflate, FtraceStats, TrackEvents on tracks of
    notes, TrackDescriptors of these tracks). Scanning stops at the first byte that doesn't belong
    to a whole packet.

    Args:
        data: The trace.
        notes: The upper half of the uuids of tracks with notes.
    """

def source_locations(data: bytes | bytearray | memoryview, /) -> tuple[int, set[bytes]]:
    """Return the source locations in a trace: (bytes parsed, encoded SourceLocations).

    Scanning stops at the first byte that doesn't belong to a whole packet.
    """

def timer_fd() -> int:
    """Return a descriptor, owned by the caller, that is readable when its timer expires."""

def set_timer_fd(fd: int, ms: int, /) -> None:
    """Set a `timer_fd` to become readable once, in `ms` milliseconds; it isn't readable before.

    Raises OSError if `fd` isn't a timer.
    """

def call_untraced(function: Callable[..., _T], /, *args: Any) -> _T:
    """Return `function(*args)`; function tracing records none of the calls in it."""

def call_on_own_thread(function: Callable[[], _T], /) -> _T:
    """Return `function()` as `call_untraced`; the calling thread gets the name of Stretto's own."""

def open_watch() -> int:
    """Return an inotify descriptor, owned by the caller; readable once a watched file is opened."""

def watch_opens(watch: int, path: str) -> int:
    """Add a file to an `open_watch`, which reports when the file is opened, also for execution.

    Returns a number that is the same for each path of the same file. Raises OSError if the file
    can't be watched.
    """

def add_pending_call(function: Callable[[], Any], /) -> None:
    """Call a function on the main thread at its next safe point.

    Used for work that must not be done inside a hook, such as starting a thread after a fork. An
    exception of the function is reported by `sys.unraisablehook`. Raises RuntimeError when too many
    calls are pending, and outside the main interpreter.
    """

def call_when_left(frame: FrameType, instruction: int, function: Callable[[], Any], /) -> None:
    """Call a function on the main thread once a frame has left an instruction (`f_lasti`).

    So the function is called after the call that the instruction makes, and after all hooks that
    run in this call. Raises like `add_pending_call`.
    """

# --- native/bind/probes

@final
class MachineFile:
    """A file of /proc or /sys that is kept open; each read returns its present contents.

    Args:
        path: The file, which need not exist; empty for none.
        group: The kind of file, for `sys_stats_packet`: "meminfo", "vmstat", "stat", "buddyinfo",
            "diskstat", "psi", "slab" or "cpufreq"; empty for an attribute in /sys.
        counters: For /proc/meminfo and /proc/vmstat: (kernel's name, Perfetto's number) of each
            counter, in the order of the lines. Counters with the number 0 are left out.
        parts: For "stat": the chosen parts, as bits `1 << SysStatsConfig.StatCounters`; 0 for all.
        resource: For "psi": the PsiResource of the line `some` of the file.

    Raises:
        ValueError: There is no such group.
    """

    def __new__(
        cls,
        path: str,
        group: str = "",
        counters: tuple[tuple[bytes, int], ...] = (),
        parts: int = 0,
        resource: int = 0,
    ) -> Self: ...
    def read(self) -> bytes:
        """Return the contents of an attribute in /sys; empty if it can't be read."""

def sys_stats_packet(
    files: tuple[MachineFile, ...], start_ns: int, rest: bytes, now_ns: Callable[[], int], /
) -> bytes:
    """Read files, and return them as an encoded TracePacket with SysStats.

    Args:
        files: The files; each has a group.
        start_ns: The timestamp of the packet.
        rest: Further encoded fields of SysStats.
        now_ns: Returns the time; called when the files are read.
    """

@final
class ProcessReader:
    """Reads the processes of a machine from /proc. Only one thread at a time may use an object.

    Args:
        folder: The path of /proc.
        thread_names: Whether to read the names of threads.
        main_threads: Whether each main thread has a message ProcessTree.Thread.
        ages: Whether to read the start times of processes.
        runtimes: Whether `poll` reads CPU times.
        smaps: Whether `poll` reads the sizes in `smaps_rollup`.
        dmabuf: Whether `poll` reads the size of the memory in DMA buffers.
    """

    def __new__(
        cls,
        folder: str,
        *,
        thread_names: bool = False,
        main_threads: bool = False,
        ages: bool = False,
        runtimes: bool = False,
        smaps: bool = False,
        dmabuf: bool = False,
    ) -> Self: ...
    def scan(self) -> bytes:
        """Return all processes and threads: encoded fields of a ProcessTree."""

    def poll(self) -> bytes:
        """Return the values that have changed: encoded fields of ProcessStats."""

    def new_processes(self) -> bytes:
        """Return the processes with values in the last `poll` that were not returned before.

        The result has encoded fields of a ProcessTree.
        """

    def pids(self) -> list[int]:
        """Return the ids of the processes that the last `scan` or `poll` found."""

    def forget_values(self) -> None:
        """Let the next `poll` return all values."""

    def forget(self) -> None:
        """Forget the values, and which processes were returned: all of them are new again."""

@final
class FtraceReader:
    """Reads events of the kernel from `trace_pipe_raw`, and converts them.

    Args:
        events: Each event is (id, number, form, fields, descriptor, prefix):
            `id`: its id in the format file.
            `number`: the number of its field in FtraceEvent.
            `form`: 1; for events of CompactSched 2 (sched_switch) or 3 (sched_waking); for
                ftrace/print with `print_rules` 4.
            `fields`: (number, offset, size, kind, label) of each field
                (native/probes/ftrace_event.h). With a label, the field is a
                GenericFtraceEvent.Field that begins with it; else it is None.
            `descriptor`: the GenericEventDescriptor if FtraceEvent has no such event, else None.
            `prefix`: the first bytes of the event's message, or None.
        page_size: The size of a page of the ring buffer, in bytes.
        cpu_count: One more than the highest number of a CPU.
        print_rules: (type, prefix, allow) of each rule for the texts of ftrace/print
            (native/probes/print_filter.h).

    Raises:
        ValueError: An event can't be converted in this way.
    """

    def __new__(
        cls,
        events: tuple[
            tuple[
                int,
                int,
                int,
                tuple[tuple[int, int, int, int, bytes | None], ...],
                bytes | None,
                bytes | None,
            ],
            ...,
        ],
        page_size: int,
        cpu_count: int,
        print_rules: tuple[tuple[bytes | None, bytes, bool], ...] = (),
    ) -> Self: ...
    def drain(
        self,
        writer: TraceWriter,
        pipes: tuple[tuple[int, int], ...],
        batches: int,
        clock: bytes,
        names: Callable[[tuple[int, ...]], bytes] | None,
        /,
    ) -> None:
        """Write what CPUs have recorded, as packets with FtraceEventBundles.

        Args:
            writer: Writes the packets.
            pipes: The number of each CPU, and its file `trace_pipe_raw`.
            batches: The most batches of 128 KiB that are read for a CPU.
            clock: Encoded fields at the end of each bundle.
            names: Called for bundles whose events refer to addresses of the kernel by numbers,
                with the addresses (that of number 1 first). Returns encoded fields of the packet.

        Raises:
            ValueError: There is no such CPU.
        """

    def errors(self) -> list[int]:
        """Return each FtraceParseStatus of the damage that was found in pages."""

def ftrace_cpu_stats(files: tuple[tuple[int, str], ...], /) -> bytes:
    """Return the statistics of ring buffers: encoded fields of FtraceStats.

    Args:
        files: The number of each CPU, and the path of its file `stats`. A CPU whose file can't be
            read has no values.
    """

@final
class SyscallWaits:
    """Finds the system calls in which threads wait, from the pages of `trace_pipe_raw`.

    Args:
        kinds: What is reported about each call, by its number (native/probes/syscall_waits.h).
        enter_id: The id of the event raw_syscalls/sys_enter.
        exit_id: The id of the event raw_syscalls/sys_exit.
        page_size: The size of a page of the ring buffer, in bytes.
        min_ns: The least duration of a wait.
        hidden_tid: A thread whose calls are left out; 0 for none.
    """

    def __new__(
        cls, kinds: bytes, enter_id: int, exit_id: int, page_size: int, min_ns: int, hidden_tid: int
    ) -> Self: ...
    def read(self, fd: int, /) -> None:
        """Read the pages of a CPU from its file `trace_pipe_raw`."""

    def take(self, until: int, /) -> list[tuple[int, int, int, int, int, int, int, int]]:
        """Return the calls that are told, in the order of their ends.

        Args:
            until: All events before this time have been read.

        Returns:
            (tid, number, begin, end, result, first argument, second argument, descriptor that the
            thread used next) of each call. The number 65535 is a new thread.
        """

    def open(self, now: int, /) -> list[tuple[int, int, int, int, int, int, int, int]]:
        """Return the calls that have not ended, and last `min_ns` already: each once."""

    def rest(self) -> list[tuple[int, int, int, int, int, int, int, int]]:
        """Return the calls that are kept back, and those that have not ended: their end is 0."""

    def losses(self) -> tuple[int, int]:
        """Return how often events were lost, and how many calls of threads were not followed."""

@final
class PerfSampler:
    """Samples of all processes by perf events: one group of events for each CPU.

    Args:
        cpu_count: The most CPUs that are opened.
        kernel_frames: Whether stacks have the frames of the kernel.
        user_frames: Whether stacks have the frames of programs.
        ring_pages: The pages of each CPU's ring buffer, a power of two; 0 if counts are only
            polled.
        max_samples: The most samples of a CPU in one `read`.
        max_stack_bytes: The most bytes of stacks in one `read`; 0 for no limit.
        user_stack: Whether frames of programs are unwound by the tables of their files, which
            `add_code` names, instead of found by frame pointers.
    """

    def __new__(
        cls,
        cpu_count: int,
        kernel_frames: bool,
        user_frames: bool,
        ring_pages: int,
        max_samples: int,
        max_stack_bytes: int,
        user_stack: bool = False,
    ) -> Self: ...
    def open(
        self,
        cpu: int,
        events: tuple[tuple[int, int, int, int, int, str | None], ...],
        frequency: int,
        period: int,
        clock: int,
        /,
    ) -> None:
        """Open the events of a CPU.

        Args:
            cpu: The number of the CPU.
            events: The event that takes samples, then those that are only counted. Each is (type,
                config, config1, config2, excluded, filter); `excluded` is a sum of 1 (user), 2
                (kernel) and 4 (hypervisor), `filter` is that of a tracepoint.
            frequency: Samples per second, or 0.
            period: The count between two samples, if there is no frequency.
            clock: The clock of the timestamps, such as `time.CLOCK_BOOTTIME`.

        Raises:
            OSError: The kernel refuses an event.
            ValueError: The group is too large, or differs from those of other CPUs.
        """

    def enable(self, enable: bool, /) -> None:
        """Start or stop all events. Raises OSError."""

    def close(self) -> None:
        """Close all events. Other methods raise ValueError then."""

    def counts(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return each CPU with the counts of its events. Raises OSError."""

    def read(self) -> bool:
        """Copy the records of all CPUs; return whether there are more than limits allow."""

    def next(self) -> tuple[Any, ...] | None:
        """Convert the copied records up to the next one that needs the caller; None at the end.

        Returns:
            ("thread", pid, tid, has_user_stack): `decide` tells whether the process is wanted.
            ("code", pid, address): `add_code` names the file there, if any. With `user_stack`.
            ("frames", pid, ((space, address), ...)): `add_frame` numbers each address.
            ("name", pid, tid, name, is_exec), ("mapping", pid, address, size, offset, path),
            ("fork", pid, parent), ("exit", pid, tid): what has changed.
            ("lost", cpu, records), ("throttle", cpu, 0): the kernel has dropped records, or
            pauses the event.
        """

    def take(self) -> tuple[list[bytes], list[tuple[int, ...]]]:
        """Return the packets and the new stacks since the last call.

        A stack has the numbers of its frames, the outermost first. Stacks are numbered from 1.
        """

    def decide(self, pid: int, in_scope: bool, /) -> None:
        """Tell whether samples of a process have stacks."""

    def renew(self, pid: int, /) -> None:
        """Forget the addresses of a process, because its mappings have changed."""

    def add_code(self, start: int, end: int, bias: int, elf: ElfFile | None, /) -> None:
        """Name the file of code of the process that `next` has asked about.

        Args:
            start: The first address.
            end: The address after it.
            bias: The addresses minus those of the file itself, modulo 2^64.
            elf: The file, read with its unwind tables; None if it has none.
        """

    def clear_code(self) -> None:
        """Forget all code, and the files."""

    def add_frame(self, space: int, address: int, key: int, /) -> int:
        """Return the number of an address, from 1; 0 if there is no room.

        Addresses with the same key are one frame, and have one number.
        """

    def clear(self) -> None:
        """Forget all frames and stacks: numbers start at 1 again."""

    def stats(self) -> dict[str, int]:
        """Return the numbers of `frames` and `stacks`, of samples that were `skipped` because of a
        limit, and of `damaged` records."""

@final
class ElfFile:
    """The build id and the functions of a 64-bit ELF file.

    Args:
        path: The file.
        unwind_tables: Whether the tables by which a profiler finds callers are read, too.

    Raises:
        OSError: The file can't be opened.
        ValueError: It is no 64-bit ELF file.
    """

    build_id: Final[bytes]
    """Empty if the file has none."""
    load_bias: Final[int]
    """The addresses of the code minus its offsets in the file, modulo 2^64."""

    def __new__(cls, path: str | bytes, unwind_tables: bool = False) -> Self: ...
    def address(self, offset: int, /) -> int:
        """Return the address of the code at an offset of the file."""

    def addresses(self, name: bytes, /) -> list[int]:
        """Return where functions with this name, and parts of them (`name.cold`), begin."""

    def symbol(self, address: int, /) -> bytes | None:
        """Return the name of the function at an address."""

@final
class KernelSymbols:
    """The functions of the kernel, by /proc/kallsyms. Their number is 0 if they are hidden.

    Raises:
        OSError: The file can't be read.
    """

    def __new__(cls, path: str | bytes) -> Self: ...
    def __len__(self) -> int: ...
    def memory(self) -> int:
        """Return the size of the names and addresses, in bytes."""
    def symbol(self, address: int, /) -> bytes | None:
        """Return the name of the function at an address."""

# --- native/bind/probes: stacks of other processes

def read_process_memory(pid: int, address: int, size: int) -> bytes:
    """Return memory of another process.

    Args:
        pid: The process.
        address: The address of the first byte.
        size: The number of bytes; at most 1 MiB.

    Raises:
        OSError: The process has ended, has no such memory, or may not be read.
    """

def native_stack(
    pid: int, ranges: Sequence[tuple[int, int, int]], pc: int, sp: int
) -> tuple[int, ...]:
    """Return an address in each C function that a thread executes, the innermost first.

    Args:
        pid: The process.
        ranges: Its code: (first address, address after it, address of the `.eh_frame_hdr`).
        pc: The program counter of the thread, which waits in a system call.
        sp: Its stack pointer.

    Returns:
        As many as can be found: addresses of call instructions, or where a function is interrupted.
    """

@final
class PythonSampler:
    """Samples the Python stacks of another process (native/probes/python_sampler.h)."""

    def __init__(
        self,
        pid: int,
        layout: dict[str, int],
        heads: Sequence[int],
        gil: tuple[int, int],
        mode: int,
        period_ns: int,
        sequence_id: int,
        start_us: int,
        form: int,
    ) -> None:
        """Prepare a sampler.

        Args:
            pid: The process.
            layout: Offsets in bytes by name: the members of `st_python_layout`.
            heads: For each interpreter, the address of its pointer to its first thread; at most 16.
            gil: The addresses of the GIL's holder and of its lock; (0, 0) if they are unknown.
            mode: 0 to sample threads that run, 1 all threads, 2 the thread that holds the GIL.
            period_ns: The time between two samples.
            sequence_id: The `trusted_packet_sequence_id` of the packets; 0 for none.
            start_us: The time in us, by CLOCK_BOOTTIME, to which the first timestamp is relative.
            form: 0 for packets with `perf_sample`, 1 with `stack_sample`.
        """
    def run(self, duration_ns: int, /) -> int:
        """Sample for `duration_ns`, without the GIL.

        Returns:
            0 if the time is up; 1 if the process has ended or runs another program; 2 if take()
            must be called before more samples can be stored; 3 if take_frames() has new frames.
        """
    def take_frames(self) -> list[tuple[int, int]]:
        """Return the frames since the last call: (address of the code object, line).

        Frames are numbered from 1, in the order in which they are returned.
        """
    def take(self) -> tuple[bytes, list[tuple[int, ...]]]:
        """Return the packets since the last call, and the stacks that are new in them.

        A stack is a tuple of numbers of frames, the outermost first. Stacks are numbered from 1, in
        the order in which they are returned. `stats()["factor"]` is then that of the next packets.
        """
    def clear(self) -> None:
        """Forget all frames and stacks; numbers start at 1 again. Call take() before."""
    def hits(self) -> list[int]:
        """Return how many periods each stack was sampled for, in the order of their numbers.

        A period is `period_ns`, also while `stats()["factor"]` of them pass between two samples.
        """
    def dump(self) -> list[tuple[int, int, bool, tuple[int, ...] | None]]:
        """Sample all threads once.

        Returns:
            For each thread (address of its thread state, native id, whether it holds the GIL,
            numbers of the frames or None). None: the stack changed during each attempt to read it.

        Raises:
            ProcessLookupError: The process has ended.
        """
    def add_native(self, may_stop: bool, /) -> None:
        """Add C calls to all further samples; called once.

        Args:
            may_stop: Whether threads that run are stopped for some microseconds; else they have
                no C calls.
        """
    def set_code(self, ranges: Sequence[tuple[int, int, int]], loops: Sequence[int]) -> None:
        """Say where the process has its code, which C calls are found by.

        Args:
            ranges: Those of `native_stack`.
            loops: The first addresses of the interpreter's loop and of its parts.
        """
    def stats(self) -> dict[str, int]:
        """Return the counts in `st_sampler_stats` (native/probes/python_sampler.h) by name.

        With those of `st_native_stats` (native/probes/native_sampler.h), and of addresses of
        `unknown_code`, for which `set_code` should be called again.
        """
