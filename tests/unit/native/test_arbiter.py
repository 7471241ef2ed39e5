from __future__ import annotations

import functools
import os
import threading

import pytest

from stretto import _native
from tests.unit.native.pipeline import (
    BUFFER,
    RemoteProducer,
    make_arbiter,
    make_endpoint,
    make_table,
    numbers_of,
    packet,
    read_all,
    sealed_memory,
)


class TestInProcessArbiter:
    def test_new_arbiter_has_the_given_size_and_no_writers(self) -> None:
        arbiter = make_arbiter(make_table(), size=1 << 16)
        assert arbiter.size == 1 << 16
        assert arbiter.live_writers == 0
        assert arbiter.lost_commits == 0
        arbiter.flush()
        arbiter.notify_flush_complete(3)

    def test_second_arbiter_of_an_endpoint_is_refused(self) -> None:
        endpoint = make_endpoint(make_table())
        _native.Arbiter.in_process(endpoint, 65536, 4096)
        with pytest.raises(ValueError, match="has shared memory already"):
            _native.Arbiter.in_process(endpoint, 65536, 4096)

    @pytest.mark.parametrize(("size", "page_size"), [(4096, 1000), (5000, 4096), (4096, 8192)])
    def test_invalid_page_size_is_refused(self, size: int, page_size: int) -> None:
        with pytest.raises(ValueError, match="page size must be a multiple of 4096"):
            make_arbiter(make_table(), size, page_size)

    def test_invalid_arguments_of_the_in_process_constructor_raise(self) -> None:
        with pytest.raises(TypeError, match="expected a ProducerEndpointCore"):
            _native.Arbiter.in_process(make_table(), 4096, 4096)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="size must be from 1"):
            make_arbiter(make_table(), 0)

    def test_arbiter_is_created_only_by_its_class_methods(self) -> None:
        with pytest.raises(TypeError, match="cannot create"):
            _native.Arbiter()


class TestArbiterOverIpc:
    def test_commits_are_batched_until_the_arbiter_is_bound(self) -> None:
        with RemoteProducer(1 << 18, bound=False) as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            for number in range(20):
                writer.write(packet(number, 3000))
            remote.arbiter.flush()
            remote.serve()
            assert remote.frames == 0
            remote.bind()
            remote.serve()
            assert remote.frames == 1
            assert remote.table.stats(BUFFER)["chunks_written"] > 10
            writer.close()
            remote.serve()
            assert numbers_of(read_all(remote.table)) == list(range(20))

    def test_commits_refused_by_a_full_queue_are_sent_when_it_has_room(self) -> None:
        with RemoteProducer(1 << 20) as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            filler = bytes(65536 - 4)
            frame = len(filler).to_bytes(4, "little") + filler
            while remote.queue.push(frame):
                pass
            for number in range(100):
                assert writer.write(packet(number, 3000))
            writer.close()
            received = b""
            while remote.queue.pending or not received.endswith(b"\x20\x01"):
                remote.queue.drain()
                received = (received + remote.receive())[-65536 * 4 :]
            assert remote.queue.frames_refused > 0
            assert remote.arbiter.lost_commits == 0
            remote.table.stats(BUFFER)

    def test_invalid_shared_memory_is_refused(self) -> None:
        empty, odd = sealed_memory(0), sealed_memory(5000)
        for fd, page_size in ((empty, 4096), (odd, 4096), (odd, 1000)):
            with pytest.raises(ValueError, match="no shared memory buffer"):
                _native.Arbiter.unbound(fd, page_size)
        os.close(empty)
        os.close(odd)
        with pytest.raises(OSError, match="Bad file descriptor"):
            _native.Arbiter.unbound(odd, 4096)
        with pytest.raises(ValueError, match="no shared memory buffer"):
            _native.Arbiter.unbound(-1, 4096, 5000)

    def test_invalid_arguments_of_bind_raise(self) -> None:
        arbiter = _native.Arbiter.unbound(-1, 4096, 65536)
        with pytest.raises(TypeError, match="expected a SendQueue"):
            arbiter.bind(None, 1, 4, 6, 7)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="needs argument 'unregister_trace_writer'"):
            arbiter.bind(None, 1, 4, 6)  # type: ignore[call-arg, arg-type]


class TestDisabledArbiter:
    def test_disabled_arbiter_hands_out_no_chunks(self) -> None:
        table = make_table()
        arbiter = make_arbiter(table)
        writer = _native.TraceWriter(arbiter, BUFFER, _native.STALL)
        assert writer.write(packet(1))
        arbiter.disable()
        # The writer fills its chunk, and drops packets afterwards instead of stalling.
        while writer.write(packet(2)):
            pass
        assert _native.TraceWriter(arbiter, BUFFER).writer_id == 0


def in_child(check: str, namespace: dict[str, object]) -> int:
    """Run statements in a forked child; return its exit status: 0 if none raised."""
    pid = os.fork()
    if pid == 0:
        try:
            exec(check, namespace)
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class TestArbiterAfterFork:
    def test_forked_child_of_a_remote_producer_does_not_change_the_parents_memory(self) -> None:
        with RemoteProducer() as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            writer.write(packet(1))
            status = in_child(
                """
for number in range(1000):
    writer.write(packet(900))
writer.flush()
remote.arbiter.flush()
assert remote.queue.broken
assert _native.TraceWriter(remote.arbiter, 1).writer_id == 0
writer.close()
del writer, remote
""",
                {"writer": writer, "remote": remote, "packet": packet, "_native": _native},
            )
            assert status == 0
            writer.flush()
            remote.serve()
            assert numbers_of(read_all(remote.table)) == [1]
            writer.write(packet(2))
            writer.close()
            remote.serve()
            assert numbers_of(read_all(remote.table)) == [2]

    def test_forked_child_cannot_write_into_an_in_process_buffer(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        writer.write(packet(1))
        status = in_child(
            """
for number in range(1000):
    writer.write(packet(900))
writer.close()
assert packet(900) not in read_all(table)
""",
            {"writer": writer, "table": table, "packet": packet, "read_all": read_all},
        )
        assert status == 0
        writer.write(packet(2))
        writer.close()
        assert numbers_of(read_all(table)) == [1, 2]

    def test_writes_in_a_grandchild_process_do_not_fail(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        namespace: dict[str, object] = {"writer": writer, "packet": packet, "in_child": in_child}
        namespace["again"] = {"writer": writer, "packet": packet}
        assert in_child('assert in_child("writer.write(packet(1))", again) == 0', namespace) == 0

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_child_forked_while_threads_write_cannot_write(self) -> None:
        stop = threading.Event()
        table = make_table()
        with RemoteProducer() as remote:
            arbiters = [make_arbiter(table), remote.arbiter]

            def write(arbiter: _native.Arbiter) -> None:
                writer = _native.TraceWriter(arbiter, BUFFER)
                while not stop.is_set():
                    writer.write(packet(1, 100))
                writer.close()

            threads = [threading.Thread(target=write, args=(a,)) for a in arbiters * 2]
            for thread in threads:
                thread.start()
            for _ in range(5):
                remote.serve()
                check = "writer = new(); assert not writer.write(packet(2)); writer.close()"
                for arbiter in arbiters:
                    new = functools.partial(_native.TraceWriter, arbiter, BUFFER)
                    assert in_child(check, {"new": new, "packet": packet}) == 0
            stop.set()
            for thread in threads:
                thread.join()
            assert [a.live_writers for a in arbiters] == [0, 0]
