from __future__ import annotations

import os
import tempfile

import pytest

from stretto import _native
from tests.unit.native.pipeline import (
    BUFFER,
    COMMIT_DATA,
    SERVICE_ID,
    RemoteProducer,
    field,
    make_arbiter,
    make_endpoint,
    make_table,
    numbers_of,
    packet,
    read_all,
    sealed_memory,
)


def invoke_frame(
    args: bytes, service: int = SERVICE_ID, method: int = COMMIT_DATA, drop_reply: bool = True
) -> bytes:
    invoke = field(1, service) + field(2, method) + field(3, args)
    if drop_reply:
        invoke += field(4, 1)
    payload = field(2, 9) + field(5, invoke)
    return len(payload).to_bytes(4, "little") + payload


class TestAttachSharedMemory:
    def test_attaching_a_second_shared_memory_is_refused(self) -> None:
        endpoint = make_endpoint(make_table())
        fd = sealed_memory(8192)
        endpoint.attach_fd(fd, 8192, 4096)
        with pytest.raises(ValueError, match="has shared memory already"):
            endpoint.attach_fd(fd, 8192, 4096)
        os.close(fd)

    def test_memory_without_shrink_seal_is_refused(self) -> None:
        endpoint = make_endpoint(make_table())
        fd = os.memfd_create("unsealed", os.MFD_CLOEXEC)
        os.ftruncate(fd, 8192)
        with pytest.raises(ValueError, match="sealed against shrinking"):
            endpoint.attach_fd(fd, 8192, 4096)
        os.close(fd)
        with tempfile.TemporaryFile() as file:
            file.truncate(8192)
            with pytest.raises(ValueError, match="sealed against shrinking"):
                endpoint.attach_fd(file.fileno(), 8192, 4096)

    @pytest.mark.parametrize(
        ("size", "page_size"),
        [(8192, 4095), (8192, 16384), (12288, 8192), (8192, 1), (8192, 65537)],
    )
    def test_invalid_page_or_memory_size_is_refused(self, size: int, page_size: int) -> None:
        endpoint = make_endpoint(make_table())
        fd = sealed_memory(12288)
        with pytest.raises(ValueError, match=r"page.size"):
            endpoint.attach_fd(fd, size, page_size)
        with pytest.raises(ValueError, match="at least 16384 bytes"):
            endpoint.attach_fd(fd, 16384, 4096)
        endpoint.attach_fd(fd, 8192, 4096)  # After failed calls, valid memory can be attached.
        os.close(fd)

    def test_closed_descriptor_is_an_error(self) -> None:
        fd = sealed_memory(4096)
        os.close(fd)
        with pytest.raises(OSError, match="Bad file descriptor"):
            make_endpoint(make_table()).attach_fd(fd, 4096, 4096)


class TestCommitRequest:
    def test_commit_moves_chunks_and_returns_the_flush_id(self) -> None:
        with RemoteProducer() as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            for number in range(1000):
                assert writer.write(packet(number))
            writer.close()
            remote.arbiter.notify_flush_complete(77)
            remote.serve()
            assert remote.flush_ids == [77]
            assert numbers_of(read_all(remote.table)) == list(range(1000))

    def test_chunks_for_a_forbidden_buffer_are_discarded_and_counted(self) -> None:
        with RemoteProducer() as remote:
            remote.endpoint.allow_buffer(BUFFER, False)
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            writer.write(packet(1))
            writer.close()
            remote.serve()
            assert read_all(remote.table) == b""
            assert remote.endpoint.stats()["chunks_discarded"] == 1

    @pytest.mark.parametrize(
        "request_bytes",
        [
            b"\xff",
            field(1, b"\xff\xff"),
            field(1, field(1, 1 << 40) + field(2, 99) + field(3, 1)),
            field(2, field(1, 1) + field(2, 70000) + field(3, 1) + field(4, b"x" * 9)),
            b"\x0a\xff\xff\xff\xff\x0f",
            field(9, b"unknown"),
        ],
    )
    def test_malformed_commit_requests_raise_nothing(self, request_bytes: bytes) -> None:
        endpoint = make_endpoint(make_table())
        assert endpoint.commit(request_bytes) == 0
        fd = sealed_memory(4096)
        endpoint.attach_fd(fd, 4096, 4096)
        os.close(fd)
        assert endpoint.commit(request_bytes + field(3, 5)) in (0, 5)

    def test_malformed_commit_request_is_counted(self) -> None:
        endpoint = make_endpoint(make_table())
        endpoint.commit(b"\xff")
        assert endpoint.stats()["malformed_requests"] == 1

    def test_commit_accepts_only_bytes_like_objects(self) -> None:
        endpoint = make_endpoint(make_table())
        assert endpoint.commit(bytearray(field(3, 6))) == 6
        assert endpoint.commit(memoryview(field(3, 1 << 40))) == 1 << 40
        with pytest.raises(TypeError, match="request must be bytes-like"):
            endpoint.commit("x")  # type: ignore[arg-type]


class TestCommitFrames:
    def test_commit_frames_stops_at_the_first_frame_that_is_no_commit(self) -> None:
        endpoint = make_endpoint(make_table())
        run = invoke_frame(field(3, 5)) + invoke_frame(field(3, 9)) + invoke_frame(b"")
        for rest in (
            b"",
            invoke_frame(b"", method=COMMIT_DATA + 1),
            invoke_frame(b"", service=2),
            invoke_frame(field(3, 11), drop_reply=False),
            bytes(4),
            b"\xff\xff\xff\xff",
            invoke_frame(field(3, 13))[:-1],
            b"\x02\0\0\0\xff\xff",
        ):
            assert endpoint.commit_frames(run + rest, SERVICE_ID, COMMIT_DATA) == (len(run), 3, 9)

    def test_commit_frames_consumes_only_commit_requests(self) -> None:
        endpoint = make_endpoint(make_table())
        for data in (b"", b"\1", b"\1\0\0\0", bytes(100)):
            assert endpoint.commit_frames(data, SERVICE_ID, COMMIT_DATA) == (0, 0, 0)

    def test_malformed_request_in_a_valid_frame_is_consumed_and_counted(self) -> None:
        endpoint = make_endpoint(make_table())
        frame = invoke_frame(b"\xff\xff")
        assert endpoint.commit_frames(frame, SERVICE_ID, COMMIT_DATA) == (len(frame), 1, 0)
        assert endpoint.stats()["malformed_requests"] == 1


class TestScrapingOfChunks:
    def test_scrape_copies_uncommitted_packets_once(self) -> None:
        with RemoteProducer() as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            remote.serve()  # Now the service knows the writer.
            for number in range(3):
                writer.write(packet(number))
            remote.endpoint.scrape([BUFFER])
            assert numbers_of(read_all(remote.table)) == [0, 1, 2]
            writer.write(packet(3))
            writer.close()
            remote.serve()
            assert numbers_of(read_all(remote.table)) == [3]

    def test_scrape_copies_packets_of_in_process_writers(self) -> None:
        table = make_table()
        endpoint = make_endpoint(table)
        writer = _native.TraceWriter(_native.Arbiter.in_process(endpoint, 65536, 4096), BUFFER)
        writer.write(packet(4))
        endpoint.scrape((BUFFER,))
        assert numbers_of(read_all(table)) == [4]

    def test_scrape_ignores_buffers_that_are_not_given(self) -> None:
        with RemoteProducer() as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER)
            remote.serve()
            writer.write(packet(1))
            remote.endpoint.scrape([])
            remote.endpoint.scrape([BUFFER + 1])
            assert read_all(remote.table) == b""

    def test_invalid_arguments_of_scrape_raise(self) -> None:
        endpoint = make_endpoint(make_table())
        with pytest.raises(ValueError, match="buffer_id must be from 1"):
            endpoint.scrape([0])
        with pytest.raises(TypeError, match="buffer_id must be an int"):
            endpoint.scrape([1, "x"])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="not iterable"):
            endpoint.scrape(3)  # type: ignore[arg-type]


class TestWritersOfTheEndpoint:
    def test_invalid_writer_ids_of_the_peer_are_ignored(self) -> None:
        endpoint = make_endpoint(make_table())
        for writer, buffer in ((32767, BUFFER), (0, BUFFER), (32768, BUFFER), (1, 65536)):
            endpoint.register_writer(writer, buffer)
        endpoint.unregister_writer(32767)
        endpoint.unregister_writer(1 << 31)
        with pytest.raises(ValueError, match="writer_id"):
            endpoint.register_writer(1 << 32, BUFFER)


def test_endpoint_can_be_used_after_its_arbiter_is_deleted() -> None:
    table = make_table()
    endpoint = make_endpoint(table)
    arbiter = _native.Arbiter.in_process(endpoint, 65536, 4096)
    del arbiter
    endpoint.register_writer(1, BUFFER)
    endpoint.scrape([BUFFER])
    endpoint.commit(field(1, field(1, 0) + field(2, 0) + field(3, BUFFER)))


def test_writer_keeps_a_reference_to_its_buffer_table() -> None:
    writer = _native.TraceWriter(make_arbiter(make_table()), BUFFER)
    assert all(writer.write(packet(n)) for n in range(10000))
