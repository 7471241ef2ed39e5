"""After os.fork during a recording, both processes continue without errors or warnings."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.recorded_events import events_of

HEAD = """
import os, sys, stretto
from stretto.client.recording import recording_config
path, child_path = sys.argv[1:]

def end(pid):
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with two output files; return the names of the events in each."""
    paths = [tmp_path / "parent.pftrace", tmp_path / "child.pftrace"]

    def run(source, *options):
        code = HEAD + textwrap.dedent(source)
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "error",
                "-X",
                "faulthandler",
                *options,
                "-c",
                code,
                *map(str, paths),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        traces = [path.read_bytes() if path.exists() else b"" for path in paths]
        return [[event.name or event.kind for event in events_of(trace)] for trace in traces]

    return run


def test_trace_of_the_parent_is_complete(run):
    parent, child = run("""
        with stretto.recording(path):
            stretto.instant("before")
            pid = os.fork()
            if pid == 0:
                stretto.instant("of the child")
                os._exit(0)
            stretto.instant("after")
            end(pid)
            stretto.instant("end")
    """)
    assert (parent, child) == (["before", "after", "end"], [])


def test_child_records_a_trace_of_its_own(run):
    parent, child = run("""
        with stretto.recording(path):
            stretto.instant("before")
            pid = os.fork()
            if pid == 0:
                with stretto.recording(child_path), stretto.slice("child", n=[1]):
                    stretto.instant("inside")
                os._exit(0)
            stretto.instant("after")
            end(pid)
    """)
    assert parent == ["before", "after"]
    assert child == ["child", "inside", 2]


def test_slice_open_during_a_fork_ends_only_in_the_parent(run):
    parent, child = run("""
        with stretto.recording(path), stretto.slice("outer"):
            stretto.begin("begun")
            with stretto.slice("slice"):
                pid = os.fork()
                if pid == 0:
                    with stretto.recording(child_path):
                        try:
                            with stretto.slice("child's"):
                                raise KeyError
                        except KeyError:
                            pass
                        stretto.end()
            if pid == 0:
                os._exit(0)
            stretto.end()
            end(pid)
    """)
    assert parent == ["outer", "begun", "slice", 2, 2, 2]
    assert child == ["child's", 2]


def test_inherited_slice_adds_no_event_to_the_session_of_the_child(run):
    parent, child = run("""
        with stretto.recording(path):
            slice_ = stretto.slice("inherited")
            slice_.__enter__()
            pid = os.fork()
            if pid == 0:
                with stretto.recording(child_path), stretto.slice("child"):
                    slice_.__exit__(None, None, None)
                    stretto.instant("inside")
                os._exit(0)
            end(pid)
            slice_.__exit__(None, None, None)
    """)
    assert (parent, child) == (["inherited", 2], ["child", "inside", 2])


@pytest.mark.parametrize("stream", [False, True])
def test_child_that_leaves_the_recording_block_does_not_end_the_recording(run, stream):
    """If the child leaves the block, the parent's session continues and its file is unchanged."""
    parent, child = run(f"""
        with stretto.recording(path, stream={stream}) as session:
            stretto.instant("before")
            pid = os.fork()
            if pid:
                end(pid)
            stretto.instant("after")
        if pid == 0:
            try:
                session.stop()
            except stretto.StrettoError as error:
                assert "belongs to the parent" in str(error), error
                session.close()
                sys.exit(0)
    """)
    assert (parent, child) == (["before", "after"], [])


def test_parent_records_before_and_after_each_of_many_forks(run):
    parent, _ = run("""
        with stretto.recording(path):
            for number in range(30):
                stretto.instant("before", number=number)
                pid = os.fork()
                if pid == 0:
                    for _ in range(10):
                        stretto.instant("child")
                    os._exit(0)
                stretto.instant("after")
                end(pid)
    """)
    assert parent == ["before", "after"] * 30


def test_grandchild_adds_no_event_to_the_session_of_the_child(run):
    parent, child = run("""
        with stretto.recording(path):
            pid = os.fork()
            if pid == 0:
                with stretto.recording(child_path):
                    stretto.instant("child")
                    grandchild = os.fork()
                    if grandchild == 0:
                        with stretto.slice("grandchild"):
                            os._exit(0)
                    end(grandchild)
                    stretto.instant("child again")
                os._exit(0)
            end(pid)
            stretto.instant("parent")
    """)
    assert (parent, child) == (["parent"], ["child", "child again"])


@pytest.mark.thorough
def test_streaming_continues_after_a_fork(run):
    """The tracing thread is restarted after the fork, even if the main thread blocks in C."""
    parent, _ = run(
        """
        import threading, time
        def work():
            stretto.instant("before")
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            end(pid)
            size = os.path.getsize(path)
            deadline = time.monotonic() + 20
            while os.path.getsize(path) == size:
                assert time.monotonic() < deadline, "nothing is written any more"
                for number in range(1000):
                    stretto.instant("after", number=number)
                time.sleep(0.01)  # sleep: polls in the recorded program
        with stretto.recording(path, stream=True):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        """,
        "-W",
        "ignore:This process:DeprecationWarning",  # the program forks while it has two threads
    )
    assert set(parent) == {"before", "after"}


@pytest.mark.parametrize("waiter", ["main", "another"])
def test_fork_in_a_thread_does_not_block_waiting_threads(run, waiter):
    """The tracing thread is restarted after the fork even if the main thread waits in C."""
    run(
        f"""
        import threading, time
        config = recording_config(buffer_bytes=1 << 20)
        config.duration_ms = 700
        session = stretto.TracingSession(config)
        session.start()
        def fork():
            time.sleep(0.2)  # sleep: the others wait by now
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            end(pid)
        def wait():
            start = time.monotonic()
            session.wait(15)
            assert time.monotonic() - start < 10
        threads = [threading.Thread(target=fork)]
        if {waiter!r} == "another":
            threads.append(threading.Thread(target=wait))
        for thread in threads:
            thread.start()
        if {waiter!r} == "main":
            wait()
        for thread in reversed(threads):
            thread.join()
        session.close()
        """,
        "-W",
        "ignore:This process:DeprecationWarning",
    )


def test_multiprocessing_child_adds_nothing_to_the_trace_of_the_parent(run):
    parent, _ = run(
        """
        import multiprocessing
        category = stretto.Category("fork.category")
        def work(number):
            with category.slice("in the child", number=number):
                return number * 2
        if __name__ == "__main__":
            with stretto.recording(path):
                context = multiprocessing.get_context("fork")
                processes = [context.Process(target=work, args=(n,)) for n in range(4)]
                for process in processes:
                    process.start()
                for process in processes:
                    process.join()
                    assert process.exitcode == 0
                    process.close()
                stretto.instant("parent")
        """
    )
    assert parent == ["parent"]


def test_preexec_fn_of_a_subprocess_may_trace(run):
    parent, _ = run("""
        import subprocess
        with stretto.recording(path):
            for _ in range(5):
                subprocess.run(["true"], preexec_fn=lambda: stretto.instant("child"), check=True)
                stretto.instant("parent")
    """)
    assert parent == ["parent"] * 5


def test_at_fork_hooks_of_other_modules_may_trace(run):
    parent, _ = run("""
        os.register_at_fork(before=lambda: stretto.instant("early before"))
        with stretto.recording(path):
            for kind in ("before", "after_in_parent", "after_in_child"):
                os.register_at_fork(**{kind: lambda kind=kind: stretto.instant(kind, n=[1])})
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            end(pid)
    """)
    assert sorted(parent) == ["after_in_parent", "before", "early before"]


def test_child_has_its_own_thread_and_process_tracks(tmp_path):
    """In the child, a track that the parent created is below the child's process track."""
    out = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent("""
                import os, stretto
                before = stretto.process_track().uuid, stretto.thread_track().uuid
                track = stretto.Track("made before")
                uuid = track.uuid
                if os.fork() == 0:
                    after = stretto.process_track().uuid, stretto.thread_track().uuid
                    moved = track.uuid == uuid ^ before[0] ^ after[0]
                    print(len({*before, *after}), moved, flush=True)
                    os._exit(0)
                os.wait()
            """),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert out == "4 True\n"


def test_fork_without_a_session_succeeds():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


STREAM_INTO_A_PIPE = """
import os
import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig

reader, writer = os.pipe()
config = TraceConfig(
    buffers=[TraceConfig.BufferConfig(size_kb=4096)],
    data_sources=[TraceConfig.DataSource(config=DataSourceConfig(name="track_event"))],
    write_into_file=True,
    file_write_period_ms=100,
)
session = stretto.TracingSession(config)
session.setup(writer)
session.start()
os.close(writer)
category = stretto.Category("fork")
for number in range(20_000):
    category.instant("event", number=number)
session.flush()
trace = os.read(reader, 1)  # the pipe is full, and a thread waits for its reader
pid = os.fork()
if not pid:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
with open(reader, "rb") as file:
    session._backend.call(session._endpoint.disable_tracing)
    trace += file.read()
session.close()
from stretto.protos.trace import Trace
print(sum(packet.track_event is not None for packet in Trace.decode(trace).packet))
"""


def test_fork_stops_the_file_writer_thread_without_losing_events():
    """CPython 3.12 and later warn of a fork with a second thread; `-W error` hides the warning."""
    command = [sys.executable, "-W", "always", "-c", STREAM_INTO_A_PIPE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("20000\n", "")
