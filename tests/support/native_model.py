"""A simple model of the native data path: lists of packets, without memory, limits and threads.

The service can use this module instead of `stretto._native`. As long as no buffer overflows, a
program must produce the same trace with both modules.
"""

from __future__ import annotations

from stretto.service.output.packet_encoder import framed, number

RING = 1
DISCARD = 2
STALL = 0
DROP = 1
STALL_THEN_DROP = 2

COUNTERS = """
bytes_written chunks_written bytes_overwritten chunks_overwritten chunks_discarded
chunks_rewritten chunks_relocated chunks_committed_out_of_order write_wrap_count patches_succeeded
patches_failed readaheads_succeeded readaheads_failed bytes_read chunks_read
padding_bytes_written padding_bytes_cleared abi_violations trace_writer_packet_loss
sequence_packet_loss
""".split()


class _Buffer:
    def __init__(self, size):
        self.size = size
        self.unread = []  # unread packets as tuples (producer, writer, packet)
        self.known = {}  # identity (uid, pid) of each producer
        self.taken = {}  # (id, number of packets) of the last chunk of each (producer, writer)

    def take(self, producer, writer, chunk_id, packets):
        """Add the packets of a chunk, except those that an earlier scrape added to this buffer."""
        last_id, count = self.taken.get((producer, writer), (chunk_id, 0))
        new = packets[count:] if last_id == chunk_id else packets
        self.unread += [(producer, writer, packet) for packet in new]
        self.taken[producer, writer] = chunk_id, len(packets)


class BufferTable:
    def __init__(self):
        self.buffers = {}

    def create(self, buffer_id, size, policy, fd=-1):
        if not buffer_id or buffer_id in self.buffers or not size or policy not in (1, 2):
            raise ValueError("bad buffer")
        self.buffers[buffer_id] = _Buffer(size)

    def remove(self, buffer_id):
        del self.buffers[buffer_id]

    def clone(self, source_id, clone_id):
        source = self.buffers[source_id]
        copy = self.buffers[clone_id] = _Buffer(source.size)
        copy.unread = list(source.unread)
        copy.known = dict(source.known)
        copy.taken = dict(source.taken)

    def exchange(self, buffer_id, other_id):
        table = self.buffers
        table[buffer_id], table[other_id] = table[other_id], table[buffer_id]

    def set_producer(self, buffer_id, producer_id, uid, pid, machine_id=0):
        self.buffers[buffer_id].known[producer_id] = (uid, pid)

    def stats(self, buffer_id):
        buffer = self.buffers[buffer_id]
        return dict.fromkeys(COUNTERS, 0) | {"buffer_size": buffer.size, "unread": 0}

    def visit_writers(self, buffer_id, visit):
        self.buffers[buffer_id]  # raises KeyError if the buffer doesn't exist

    def set_watermark(self, buffer_id, eventfd, unread_bytes):
        self.buffers[buffer_id]  # raises KeyError if the buffer doesn't exist


class Readback:
    def __init__(self, table, machine_id=0):
        self.table = table
        self.sequences = {}
        self.invalid_packets = 0
        self.packets = 0

    def begin(self, buffer_id):
        pass

    def copy(self):
        copy = Readback(self.table)
        copy.sequences = dict(self.sequences)
        copy.invalid_packets, copy.packets = self.invalid_packets, self.packets
        return copy

    def sequence_id(self, producer_id, writer_id):
        return self.sequences.setdefault((producer_id, writer_id), len(self.sequences) + 2)

    def read(self, buffer_id, limit):
        buffer = self.table.buffers[buffer_id]
        out = b""
        while buffer.unread and len(out) < limit:
            producer, writer, packet = buffer.unread.pop(0)
            uid, pid = buffer.known[producer]
            trusted = number(3, uid) + number(10, self.sequence_id(producer, writer))
            out += framed(packet + trusted + number(79, pid))
            self.packets += 1
        return out, bool(buffer.unread)


class ProducerEndpointCore:
    def __init__(self, table, producer_id):
        self.table = table
        self.producer_id = producer_id
        self.allowed = set()
        self.discarded = 0
        self.writers = []

    def attach_fd(self, fd, size, page_size):
        pass

    def allow_buffer(self, buffer_id, allow):
        (self.allowed.add if allow else self.allowed.discard)(buffer_id)

    def copy(self, writer):
        """Copy the writer's chunk into its target buffer; return False if that isn't allowed."""
        if writer.target not in self.allowed or writer.target not in self.table.buffers:
            return False
        buffer = self.table.buffers[writer.target]
        buffer.take(self.producer_id, writer.writer_id, writer.chunk_id, writer.chunk)
        return True

    def move(self, writer):
        if not writer.chunk:
            return
        self.discarded += not self.copy(writer)
        writer.chunk = []
        writer.chunk_id += 1

    def scrape(self, buffer_ids):
        """Copy all open chunks to their buffers; the writers still own the chunks."""
        for writer in self.writers:
            if writer.target in buffer_ids:
                self.copy(writer)

    def stats(self):
        return {"chunks_discarded": self.discarded, "patches_discarded": 0}


class Arbiter:
    def __init__(self, core, size):
        self.core = core
        self.size = size
        self.disabled = False

    @staticmethod
    def in_process(endpoint, size, page_size):
        return Arbiter(endpoint, size)

    def flush(self):
        pass

    def disable(self):
        self.disabled = True


class TraceWriter:
    def __init__(self, arbiter, target_buffer, policy=DROP):
        self.core = arbiter.core
        self.arbiter = arbiter
        self.target = target_buffer
        self.chunk = []
        self.chunk_id = 0
        self.first = True
        self.core.writers.append(self)
        self.writer_id = len(self.core.writers)

    def write(self, packet):
        if self.arbiter.disabled:
            return False
        self.chunk.append((number(87, 1) if self.first else b"") + bytes(packet))
        self.first = False
        return True

    def flush(self):
        self.core.move(self)

    def close(self):
        self.flush()
