"""`stretto traced`: the daemon, with real producers and consumers.

Longer than 600 lines, because all classes here share the fixtures that start and stop the daemon.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.base.unix_socket import UnixSocket
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.protos.ipc import CloneSessionRequest
from stretto.protos.trace import Trace
from tests.support.recorded import check_trace
from tests.support.traced import (
    COMMAND,
    Daemon,
    Process,
    closing_all,
    context_switches,
    daemon_environment,
    wait_until,
)

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
SLICES = "select name, count(*) from slice group by name order by name"


@pytest.fixture
def opened():
    """A list of objects that are closed at the end of the test."""
    with closing_all() as things:
        yield things


@pytest.fixture
def daemon(tmp_path, opened) -> Daemon:
    daemon = Daemon(tmp_path)
    opened.append(daemon)
    return daemon


def config(**fields) -> TraceConfig:
    track_event = DataSourceConfig(
        name="track_event", track_event_config=TrackEventConfig(enabled_categories=["*"])
    )
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=4096)],
        data_sources=[
            TraceConfig.DataSource(config=track_event),
            TraceConfig.DataSource(config=DataSourceConfig(name="test.custom")),
        ],
        flush_timeout_ms=fields.pop("timeout_ms", 0),
        data_source_stop_timeout_ms=fields.pop("stop_ms", 0),
        flush_period_ms=1000,
        **fields,
    )


def started(opened, daemon, *names, **fields):
    """Start producers and a consumer; return the consumer and the producers."""
    producers = [daemon.producer(name) for name in names]
    opened += producers
    consumer = daemon.consumer()
    opened.append(consumer)
    consumer.wait_for_producers(*names)
    consumer.enable(config(**fields))
    if names:
        wait_for_start(consumer)
    return consumer, producers


def write(producers, count: int) -> None:
    """Make each producer write this number of slices."""
    for producer in producers:
        producer.write_line(str(count))
    for producer in producers:
        assert producer.line() == f"wrote {count}\n"


def wait_for_start(consumer) -> None:
    """Wait until all data sources of the session run."""
    events = []
    consumer.endpoint.observe_events(2, events.append)
    consumer.wait(lambda: any(event.all_data_sources_started for event in events))


def sessions_in(consumer) -> int:
    return len(consumer.state().tracing_sessions)


class TestDaemonSessions:
    def test_two_programs_are_recorded_in_one_trace(self, daemon, opened, oracle):
        consumer, producers = started(opened, daemon, "one", "two")
        write(producers, 1000)
        assert consumer.flush()
        consumer.stop()
        loaded = check_trace(oracle, consumer.read())
        counts = dict(loaded.query(SLICES))
        assert counts == {"one": 1000, "two": 1000}

    def test_program_that_starts_later_is_recorded(self, daemon, opened, oracle):
        consumer, _ = started(opened, daemon)
        late = daemon.producer("late")
        opened.append(late)
        write([late], 50)
        assert consumer.flush()
        consumer.stop()
        assert check_trace(oracle, consumer.read()).query(SLICES) == [("late", 50)]

    def test_events_of_killed_programs_are_kept(self, daemon, opened, oracle):
        names = [f"p{number}" for number in range(6)]
        consumer, producers = started(opened, daemon, *names)
        write(producers, 200)
        for victim in producers[::2]:
            victim.write_line("100000000")  # the producer writes until it is killed
        for victim in producers[::2]:
            victim.signal(signal.SIGKILL)
            assert victim.wait() == -signal.SIGKILL
        consumer.wait_for_producers(*names[1::2])
        write(producers[1::2], 200)
        assert consumer.flush()
        consumer.stop()
        loaded = check_trace(oracle, consumer.read(), complete=False)
        counts = dict(loaded.query(SLICES))
        assert [counts[name] for name in names[1::2]] == [400, 400, 400]
        assert all(counts[name] >= 200 for name in names[::2])
        assert {each.name for each in consumer.state().producers} == set(names[1::2])

    def test_stopped_program_does_not_block_flush_and_stop(self, daemon, opened, oracle):
        consumer, producers = started(opened, daemon, "runs", "hangs", timeout_ms=200, stop_ms=200)
        write(producers, 100)
        producers[1].stop()
        assert not consumer.flush(0)  # 0: the service uses the flush time-out in the config
        consumer.stop()  # waits for the stop time-out in the config
        loaded = oracle(consumer.read())
        assert {name for name, _, _ in loaded.errors()} == {"traced_flushes_failed"}
        # The service has scraped the chunks of the stopped program.
        assert dict(loaded.query(SLICES)) == {"runs": 100, "hangs": 100}

    def test_a_user_can_have_five_sessions(self, daemon, opened):
        consumers = [daemon.consumer() for _ in range(6)]
        opened += consumers
        for number, consumer in enumerate(consumers[:5], 1):
            consumer.enable(config())
            assert sessions_in(consumer) == number
        consumers[5].enable(config())
        consumers[5].wait(lambda: consumers[5].ended)
        assert "sessions" in consumers[5].error
        consumers[0].endpoint.free_buffers()
        assert sessions_in(consumers[0]) == 4
        consumers[5].enable(config())
        assert sessions_in(consumers[5]) == 5

    def test_session_ends_when_its_consumer_disconnects(self, daemon, opened):
        consumer, _ = started(opened, daemon)
        other = daemon.consumer()
        opened.append(other)
        assert sessions_in(other) == 1
        consumer.endpoint.disconnect()
        wait_until(lambda: sessions_in(other) == 0, "the session's end")


class TestDaemonEnd:
    def test_running_session_is_saved_into_its_file(self, daemon, opened, oracle, tmp_path):
        path = tmp_path / "trace.pftrace"
        consumer, producers = started(
            opened, daemon, "app", write_into_file=True, output_path=str(path)
        )
        write(producers, 500)
        daemon.signal(signal.SIGTERM)
        consumer.wait(lambda: consumer.ended)
        consumer.wait(lambda: consumer.disconnected)
        assert daemon.wait() == 0
        assert consumer.error == ""
        loaded = check_trace(oracle, path.read_bytes())
        assert loaded.query(SLICES) == [("app", 500)]
        assert not Path(daemon.producer_socket).exists()
        assert not Path(daemon.consumer_socket).exists()

    def test_detached_session_is_saved_into_its_file(self, daemon, opened, tmp_path):
        path = tmp_path / "trace.pftrace"
        consumer, producers = started(
            opened, daemon, "app", write_into_file=True, output_path=str(path)
        )
        write(producers, 500)
        assert consumer.call(lambda callback: consumer.endpoint.detach("key", callback))
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        events = [each for each in Trace.decode(path.read_bytes()).packet if each.track_event]
        assert len(events) >= 1000

    def test_consumer_can_read_its_ring_buffer_before_the_daemon_exits(
        self, daemon, opened, oracle
    ):
        consumer, producers = started(opened, daemon, "app")
        write(producers, 500)
        daemon.signal(signal.SIGINT)
        consumer.wait(lambda: consumer.ended)
        loaded = check_trace(oracle, consumer.read())
        assert loaded.query(SLICES) == [("app", 500)]
        consumer.endpoint.free_buffers()
        consumer.wait(lambda: consumer.disconnected)
        assert daemon.wait() == 0

    def test_new_connections_are_closed_while_the_daemon_ends(self, daemon, opened):
        consumer, _ = started(opened, daemon)
        daemon.signal(signal.SIGTERM)
        consumer.wait(
            lambda: consumer.ended
        )  # the daemon doesn't exit before the consumer has read the trace
        late = daemon.consumer()
        opened.append(late)
        assert late.disconnected
        assert not late.connected

    def test_second_sigterm_ends_the_daemon_immediately(self, daemon, opened):
        consumer, _ = started(opened, daemon)
        daemon.signal(signal.SIGTERM)
        consumer.wait(lambda: consumer.ended)
        begin = time.monotonic()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        assert (
            time.monotonic() - begin < 5
        )  # without a second signal, the daemon waits 10 s for the consumer
        assert not Path(daemon.producer_socket).exists()

    def test_sighup_ends_the_daemon(self, daemon):
        daemon.signal(signal.SIGHUP)
        assert daemon.wait() == 0

    def test_signal_ignored_at_the_start_stays_ignored(self, tmp_path, opened):
        shell = ["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *COMMAND]
        daemon = Daemon(tmp_path, command=shell)
        opened.append(daemon)
        daemon.signal(signal.SIGHUP)
        opened.append(daemon.consumer())
        assert daemon.popen.poll() is None


class TestDaemonLog:
    def test_log_names_the_peer_of_a_closed_connection(self, daemon):
        for kind, path in (
            ("producer", daemon.producer_socket),
            ("consumer", daemon.consumer_socket),
        ):
            peer = UnixSocket.connect(path)
            peer.send(b"\xff" * 4)
            line = daemon.log()
            assert f"disconnected a {kind}, process {os.getpid()}: the peer announced" in line
            peer.close()


class TestSecondDaemon:
    def test_second_daemon_is_refused_while_the_first_daemon_runs(self, daemon, opened):
        second = subprocess.run(
            COMMAND, env=daemon.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert second.returncode == 1
        assert "a tracing service listens on" in second.stderr
        opened.append(daemon.producer("still-there"))

    def test_second_daemon_replaces_the_sockets_of_a_killed_daemon(self, daemon, opened, tmp_path):
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        assert Path(daemon.producer_socket).exists()
        second = Daemon(tmp_path)
        opened.append(second)
        opened.append(second.producer("app"))


class TestSocketPermissions:
    def test_sockets_have_the_default_permissions(self, daemon):
        assert stat.S_IMODE(os.stat(daemon.producer_socket).st_mode) == 0o666
        assert stat.S_IMODE(os.stat(daemon.consumer_socket).st_mode) == 0o600

    @needs_root
    def test_groups_and_modes_of_the_sockets_can_be_set(self, tmp_path, opened):
        daemon = Daemon(tmp_path, "--set-socket-permissions", "1234:0660:4321:0660")
        opened.append(daemon)
        producer, consumer = os.stat(daemon.producer_socket), os.stat(daemon.consumer_socket)
        assert (producer.st_gid, stat.S_IMODE(producer.st_mode)) == (1234, 0o660)
        assert (consumer.st_gid, stat.S_IMODE(consumer.st_mode)) == (4321, 0o660)

    @needs_root
    @pytest.mark.parametrize("group", [NOBODY, 4321])
    def test_abstract_consumer_socket_accepts_only_its_group(self, tmp_path, opened, group):
        address = f"@stretto-test-{os.getpid()}-{group}"
        daemon = Daemon(
            tmp_path,
            "--set-socket-permissions",
            ":0666:4321:0660",
            environment={"PERFETTO_CONSUMER_SOCK_NAME": address},
        )
        opened.append(daemon)
        member = Process(sys.executable, "-c", KNOCK, address, str(group))
        opened.append(member)
        if group == 4321:
            assert member.line() == "silence\n"
        else:
            assert member.line() == "disconnected\n"
            assert f"refused a consumer (pid {member.pid}, uid {NOBODY})" in daemon.log()


KNOCK = """
import os, select, socket, sys
os.setgroups([int(sys.argv[2])])
os.setgid(65534)
os.setuid(65534)
end = socket.socket(socket.AF_UNIX)
end.connect("\\0" + sys.argv[1][1:])
print("disconnected" if select.select([end], [], [], 1)[0] else "silence")
"""


class TestOutputPath:
    def test_output_file_is_readable_by_its_owner_only(self, daemon, opened, tmp_path):
        path = tmp_path / "trace"
        started(opened, daemon, write_into_file=True, output_path=str(path))[0].stop()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_existing_output_file_is_kept(self, daemon, opened, tmp_path):
        path = tmp_path / "precious"
        path.write_text("precious")
        consumer, _ = started(opened, daemon, write_into_file=True, output_path=str(path))
        consumer.wait(lambda: consumer.ended)
        assert "exists already" in consumer.error
        assert path.read_text() == "precious"


class TestDaemonStart:
    def test_daemon_starts_in_the_background(self, tmp_path):
        pid_file = tmp_path / "pid"
        done = subprocess.run(
            [*COMMAND, "--background", "--pid-file", "pid"],
            cwd=tmp_path,
            env=daemon_environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        pid = int(done.stdout)
        try:
            assert "listens:" in done.stderr
            assert pid_file.read_text() == f"{pid}\n"
            assert os.readlink(f"/proc/{pid}/fd/2") == os.devnull
            assert os.getsid(pid) == pid
            UnixSocket.connect(str(tmp_path / "consumer")).close()
            os.kill(pid, signal.SIGHUP)  # a daemon in the background ignores SIGHUP
            UnixSocket.connect(str(tmp_path / "consumer")).close()
        finally:
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not pid_file.exists(), "the daemon's end")
        wait_until(lambda: not (tmp_path / "consumer").exists(), "the daemon's end")

    def test_start_in_the_background_reports_a_failure(self, tmp_path):
        (tmp_path / "file").write_text("no pid")
        done = subprocess.run(
            [*COMMAND, "--background", "--pid-file", str(tmp_path / "file")],
            env=daemon_environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1
        assert "isn't a pid file" in done.stderr
        assert not (tmp_path / "producer").exists()

    @pytest.mark.parametrize(
        ("options", "environment", "why"),
        [
            (["--enable-relay-endpoint-on", "/x"], {}, "doesn't name that socket"),
            ([], {"PERFETTO_CONSUMER_SOCK_NAME": "127.0.0.1:0"}, "--allow-network-consumers"),
            (["--set-socket-permissions", ":0666::0666"], {}, "all users"),
            (["--backgroud"], {}, "stretto traced --help"),
        ],
    )
    def test_invalid_options_are_refused(self, tmp_path, options, environment, why):
        done = subprocess.run(
            [*COMMAND, *options],
            env=daemon_environment(tmp_path, **environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode in (1, 2)
        assert why in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_version_is_printed(self, capfd):
        subprocess.run([*COMMAND, "--version"], check=True, timeout=60)
        assert capfd.readouterr().out.startswith("stretto ")

    def test_sockets_passed_by_a_service_manager_are_used(self, tmp_path, opened):
        """The test passes descriptors 3 and 4 and the environment variables as systemd does."""
        listening = []
        for name in ("activated-p", "activated-c"):
            end = socket.socket(socket.AF_UNIX)
            opened.append(end)
            end.bind(str(tmp_path / name))
            end.listen()
            listening.append(end)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        opened.append(manager)
        manager.bind(str(tmp_path / "notify"))
        daemon = Daemon(
            tmp_path,
            *[str(end.fileno()) for end in listening],
            command=[sys.executable, "-c", ACTIVATE],
            pass_fds=[end.fileno() for end in listening],
            environment={"NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        opened.append(daemon)
        assert manager.recv(100) == b"READY=1"
        assert "activated-p" in daemon.first_line
        assert not Path(daemon.producer_socket).exists()
        UnixSocket.connect(str(tmp_path / "activated-p")).close()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        assert manager.recv(100) == b"STOPPING=1"
        assert (
            tmp_path / "activated-c"
        ).exists()  # the daemon doesn't delete the socket of the service manager


ACTIVATE = f"""
import os, sys
# The pipes of Popen lie lower: dup2 by way of higher numbers.
high = [os.dup2(int(fd), 100 + index) for index, fd in enumerate(sys.argv[1:])]
for target, fd in enumerate(high, 3):
    os.dup2(fd, target)
    os.close(fd)
os.environ.update(
    LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(high)), LISTEN_FDNAMES="producer:consumer"
)
os.execv({COMMAND[0]!r}, {COMMAND!r})
"""


class TestDaemonResources:
    def test_idle_daemon_is_not_woken_up(self, daemon, opened):
        opened.append(daemon.producer("app"))
        consumer = daemon.consumer()
        opened.append(consumer)
        consumer.wait_for_producers("app")
        for _ in range(5):  # the daemon may still handle messages in the first rounds
            before = context_switches(daemon.pid)
            time.sleep(0.5)  # sleep: the daemon must be idle for this time
            if context_switches(daemon.pid) == before:
                return
        raise AssertionError("the daemon doesn't come to rest")

    def test_daemon_recovers_from_a_lack_of_descriptors(self, tmp_path, opened, oracle):
        daemon = Daemon(tmp_path)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (32, 32))
        opened.append(daemon)
        consumer, producers = started(opened, daemon, "app")
        crowd = [UnixSocket.connect(daemon.producer_socket) for _ in range(60)]
        wait_until(lambda: len(os.listdir(f"/proc/{daemon.pid}/fd")) >= 31, "no descriptor left")
        write(producers, 100)
        assert consumer.flush()
        for end in crowd:
            end.close()
        late = daemon.producer("late")
        opened.append(late)
        write([late], 100)
        assert consumer.flush()
        consumer.stop()
        counts = dict(check_trace(oracle, consumer.read()).query(SLICES))
        assert counts["app"] >= 100
        assert counts["late"] == 100

    def test_session_can_start_during_a_lack_of_descriptors(self, tmp_path, opened, oracle):
        daemon = Daemon(tmp_path)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (32, 32))
        opened.append(daemon)
        poor = daemon.producer("poor")
        first, second = daemon.consumer(), daemon.consumer()
        opened += [poor, first, second]
        first.wait_for_producers("poor")
        crowd = [UnixSocket.connect(daemon.producer_socket) for _ in range(60)]
        assert "raise `ulimit -n`" in daemon.log()
        first.enable(config())
        wait_for_start(first)
        write([poor], 100)
        first.stop()
        # Without a descriptor, no shared memory could be created for the producer.
        assert "poor" not in dict(oracle(first.read()).query(SLICES))
        for end in crowd:
            end.close()
        second.wait_for_producers("poor")
        second.enable(config())
        wait_for_start(second)
        write([poor], 100)
        assert second.flush()
        second.stop()
        assert check_trace(oracle, second.read()).query(SLICES) == [("poor", 100)]

    def test_unread_pipe_ends_only_the_session_that_writes_into_it(self, daemon, opened):
        reader, writer = os.pipe()
        consumer, producers = started(opened, daemon, "app")
        hasty = daemon.consumer()
        opened.append(hasty)
        hasty.enable(config(write_into_file=True, file_write_period_ms=100), writer)
        wait_for_start(hasty)
        os.close(writer)
        write(producers, 20_000)
        hasty.wait(lambda: hasty.ended)
        assert "doesn't read" in hasty.error
        os.close(reader)
        assert sessions_in(consumer) >= 1
        write(producers, 10)
        assert consumer.flush()


@pytest.mark.few_versions
class TestSlowFiles:
    """Tests that a session written into a slow file or pipe does not delay other clients."""

    SLICES = 20_000

    def stream(self, opened, daemon, fd, **fields):
        """Start a session that writes into `fd`; return it, another consumer and the producers."""
        consumer, producers = started(opened, daemon, "app")
        slow = daemon.consumer()
        opened.append(slow)
        slow.enable(config(write_into_file=True, file_write_period_ms=100, **fields), fd)
        wait_for_start(slow)
        write(producers, self.SLICES)
        return consumer, producers, slow

    @pytest.mark.parametrize("kind", ["pipe", "FIFO", "socket"])
    def test_slow_reader_of_a_session_does_not_delay_other_clients(
        self, daemon, opened, oracle, tmp_path, kind
    ):
        """After each 4 KiB that the reader reads, the service answers another consumer."""
        reader, writer = ends(kind, tmp_path)
        bystander, _producers, slow = self.stream(opened, daemon, writer)
        os.close(writer)
        got = []
        for _ in range(20):
            got.append(os.read(reader, 4096))
            assert bystander.flush()
        assert sessions_in(bystander) == 2
        slow.endpoint.disable_tracing()
        for _ in range(20):
            got.append(os.read(reader, 4096))
            assert bystander.flush()
            slow.process_events(1)
        assert not slow.ended
        while not slow.ended:
            got.append(os.read(reader, 1 << 16))
            slow.process_events(1)
        assert not slow.error
        while piece := os.read(reader, 1 << 20):
            got.append(piece)
        os.close(reader)
        loaded = oracle(b"".join(got))
        assert loaded.query(SLICES) == [("app", self.SLICES)]

    def test_trace_is_written_completely_after_the_consumer_disconnects(
        self, daemon, opened, oracle, tmp_path
    ):
        reader, writer = os.pipe()
        bystander, _, slow = self.stream(opened, daemon, writer)
        os.close(writer)
        slow.flush()
        opened.remove(slow)
        slow.close()
        got = []
        while piece := os.read(reader, 4096):
            got.append(piece)
        assert sessions_in(bystander) == 1
        assert oracle(b"".join(got)).query(SLICES) == [("app", self.SLICES)]
        os.close(reader)

    def test_daemon_writes_all_files_before_it_exits(self, daemon, opened, oracle, tmp_path):
        reader, writer = os.pipe()
        bystander, _, slow = self.stream(opened, daemon, writer)
        os.close(writer)
        assert slow.flush()
        opened.remove(bystander)
        bystander.close()
        daemon.signal(signal.SIGTERM)
        got = []
        while piece := os.read(reader, 4096):
            got.append(piece)
        assert daemon.wait() == 0
        assert oracle(b"".join(got)).query(SLICES) == [("app", self.SLICES)]
        os.close(reader)

    def test_full_disk_ends_only_the_session_that_writes_to_it(self, daemon, opened):
        with open("/dev/full", "wb") as full:
            bystander, producers, slow = self.stream(opened, daemon, full.fileno())
        slow.wait(lambda: slow.ended)
        assert "No space left" in slow.error
        write(producers, 10)
        assert bystander.flush()

    def test_file_size_limit_ends_only_the_session_that_exceeds_it(self, daemon, opened, tmp_path):
        with open(tmp_path / "trace", "wb") as file:
            bystander, producers, slow = self.stream(opened, daemon, file.fileno())
        assert slow.flush()
        limit = (tmp_path / "trace").stat().st_size + (1 << 20)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (limit, limit))
        write(producers, 2 * self.SLICES)
        slow.wait(lambda: slow.ended)
        assert "File too large" in slow.error
        data = (tmp_path / "trace").read_bytes()
        assert 0 < len(data) <= limit
        Trace.decode(data)  # decode() fails on an incomplete packet
        write(producers, 10)
        assert bystander.flush()

    def test_copying_a_file_into_a_slow_pipe_does_not_delay_other_clients(
        self, daemon, opened, oracle, tmp_path
    ):
        reader, writer = os.pipe()
        with open(tmp_path / "trace", "w+b") as file:
            bystander, _, source = self.stream(opened, daemon, file.fileno())
        assert source.flush()
        state = bystander.state().tracing_sessions
        number = max(session.id for session in state)
        copier = daemon.consumer()
        opened.append(copier)
        answers = []
        request = CloneSessionRequest(session_id=number)
        copier.endpoint.clone_session(request, writer, answers.append)
        copier.process_events(10)
        os.close(writer)
        got = []
        for _ in range(20):
            assert bystander.flush()
            got.append(os.read(reader, 4096))
            copier.process_events(1)
        assert not answers
        while not answers:
            got.append(os.read(reader, 1 << 16))
            copier.process_events(1)
        assert answers[0].success
        while piece := os.read(reader, 1 << 20):
            got.append(piece)
        assert oracle(b"".join(got)).query(SLICES) == [("app", self.SLICES)]
        os.close(reader)


def ends(kind, folder):
    """Return a pair of connected descriptors: one to read from, one to write to."""
    if kind == "pipe":
        return os.pipe()
    if kind == "socket":
        reader, writer = socket.socketpair()
        return reader.detach(), writer.detach()
    os.mkfifo(folder / "fifo")
    reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(folder / "fifo", os.O_WRONLY)
    os.set_blocking(reader, True)
    return reader, writer
