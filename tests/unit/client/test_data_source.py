"""DataSource: the callbacks of an instance, and exceptions raised by callbacks."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import ClassVar

import pytest

import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.trace import TestEvent, TracePacket
from stretto.testing.decoded_packets import decode_packets

TestEvent.__test__ = False  # pytest must not collect this class.


class Logged(stretto.DataSource):
    name = "test.data_source"
    log: ClassVar[list[str]] = []
    fails: ClassVar[set[str]] = set()

    def note(self, what):
        self.log.append(what)
        if what in self.fails:
            raise KeyError(what)

    def on_setup(self, config):
        assert config is self.config
        self.note("setup")

    def on_start(self):
        self.note("start")

    def on_flush(self):
        self.note("flush")
        self.write(packet("flushed"))

    def on_stop(self):
        self.write(packet("last"))
        self.note("stop")


def packet(text):
    return TracePacket(for_testing=TestEvent(str=text))


def made_config(name="test.data_source", **options):
    source = TraceConfig.DataSource(config=DataSourceConfig(name=name))
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=1024)], data_sources=[source], **options
    )


def texts(trace):
    packets = decode_packets(trace)
    return [each.for_testing.str for each in packets if each.has("for_testing")]


@pytest.fixture(autouse=True)
def _log():
    Logged.register()
    Logged.log, Logged.fails = [], set()


@pytest.fixture
def complaints(monkeypatch):
    """Return what callbacks raised; the end of other tests' objects may raise, too."""
    found = []
    others = sys.unraisablehook

    def note(args):
        if isinstance(args.exc_value, KeyError):
            found.append(repr(args.exc_value))
        else:
            others(args)

    monkeypatch.setattr("sys.unraisablehook", note)
    return found


def test_callbacks_run_in_the_documented_order():
    assert Logged.instances() == ()
    with stretto.TracingSession(made_config()) as session:
        (instance,) = Logged.instances()
        assert instance.write(packet("written"))
        assert session.flush()
        session.stop()
        assert Logged.instances() == ()
        assert texts(session.read()) == ["written", "flushed", "flushed", "last"]
    assert Logged.log == ["setup", "start", "flush", "flush", "stop"]


@pytest.mark.parametrize("failing", ["setup", "start", "flush", "stop"])
def test_exception_of_a_callback_is_reported_and_recording_continues(complaints, failing):
    Logged.fails = {failing}
    with stretto.TracingSession(made_config()) as session:
        for instance in Logged.instances():
            instance.write(packet("written"))
        session.stop()
        found = texts(session.read())
    assert complaints == [f"KeyError({failing!r})"]
    assert Logged.log == ["setup", "start", "flush", "stop"]
    assert found[-1] == "last"
    assert Logged.instances() == ()


def test_instance_that_ended_before_its_start_is_not_started():
    """Another thread may end an instance before its start."""
    instance = Logged()
    instance.end()
    instance.begin()
    assert Logged.log == ["stop"]
    assert Logged.instances() == ()
    assert not instance.write(packet("late"))


def test_instance_that_calls_end_in_on_start_is_not_listed():
    class Short(stretto.DataSource):
        def on_start(self):
            self.end()

    instance = Short()
    instance.begin()
    assert Short.instances() == ()
    assert not instance.write(packet("late"))


def test_write_after_the_end_of_the_instance_returns_false():
    with stretto.TracingSession(made_config()) as session:
        (instance,) = Logged.instances()
        session.stop()
        assert not instance.write(packet("late"))
        assert not instance.write(b"")
        assert "late" not in texts(session.read())
    assert not instance.write(packet("later still"))


def test_each_session_has_its_own_instance():
    with stretto.TracingSession(made_config()) as one, stretto.TracingSession(made_config()) as two:
        first, second = Logged.instances()
        assert first.instance_id != second.instance_id
        first.write(packet("one"))
        second.write(packet("two"))
        for session in one, two:
            session.stop()
        # The callbacks run on another thread. Threads' packets have no order among each other.
        assert sorted(texts(one.read())) == ["flushed", "last", "one"]
        assert sorted(texts(two.read())) == ["flushed", "last", "two"]


def test_data_source_listed_twice_has_two_instances():
    config = made_config()
    config.data_sources.append(config.data_sources[0])
    with stretto.TracingSession(config) as session:
        assert len(Logged.instances()) == 2
        for number, instance in enumerate(Logged.instances()):
            instance.write(packet(f"of {number}"))
        session.stop()
        assert {"of 0", "of 1"} <= set(texts(session.read()))


def test_each_thread_writes_its_own_packet_sequence():
    with stretto.TracingSession(made_config()) as session:
        (instance,) = Logged.instances()

        def work():
            for number in range(100):
                instance.write(packet(f"{threading.current_thread().name} {number}"))

        threads = [threading.Thread(target=work, name=name) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.stop()
        found = [each for each in decode_packets(session.read()) if each.has("for_testing")]
    by_sequence = {}
    for each in found:
        by_sequence.setdefault(each.trusted_packet_sequence_id, []).append(each.for_testing.str)
    for name in "abcd":
        assert [f"{name} {number}" for number in range(100)] in by_sequence.values()


def test_packet_object_can_be_written_repeatedly():
    again = packet("again")
    own_time = TracePacket(timestamp=5, for_testing=TestEvent(str="own time"))
    with stretto.TracingSession(made_config()) as session:
        (instance,) = Logged.instances()
        for _ in range(2):
            instance.write(again)
        instance.write(own_time)
        instance.write(again.encode())
        session.stop()
        found = [each for each in decode_packets(session.read()) if each.has("for_testing")]
    assert not again.has("timestamp")
    # Another thread writes the packets of `on_flush` and `on_stop`: they may be first.
    own_thread = [each for each in found if each.for_testing.str not in ("flushed", "last")]
    first, second, own, encoded = (each.timestamp for each in own_thread)
    assert 0 < first <= second
    assert (own, encoded) == (5, 0)


def test_large_packets_are_recorded():
    with stretto.TracingSession(made_config()) as session:
        (instance,) = Logged.instances()
        assert instance.write(packet("x" * 300_000))
        session.stop()
        assert texts(session.read())[0] == "x" * 300_000


def test_data_source_name_that_another_class_uses_is_refused():
    class Nameless(stretto.DataSource):
        pass

    with pytest.raises(stretto.StrettoError, match="Nameless needs a class attribute `name`"):
        Nameless.register()

    class Taken(stretto.DataSource):
        name = Logged.name

    with pytest.raises(stretto.StrettoError, match="registered already, by Logged"):
        Taken.register()
    Logged.register()


def test_data_source_registered_during_a_session_is_started():
    class Late(stretto.DataSource):
        name = "test.data_source.late"

    with stretto.TracingSession(made_config("test.data_source.late")) as session:
        assert Late.instances() == ()
        Late.register()
        session.flush()
        (instance,) = Late.instances()
        assert instance.write(packet("late"))
        session.stop()
        assert texts(session.read()) == ["late"]


def test_on_start_can_create_categories_and_register_data_sources():
    """The tracing thread, which runs callbacks, must not deadlock."""

    class Nested(stretto.DataSource):
        name = "test.data_source.nested"

        def on_start(self):
            stretto.Category("test.data_source.made.in.callback")
            Logged.register()

    Nested.register()
    with stretto.TracingSession(made_config("test.data_source.nested")) as session:
        session.stop()


OUTSIDE_PYTEST = """
import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig

class Failing(stretto.DataSource):
    name = "test.failing"

    def on_start(self):
        raise RuntimeError("told to fail")

Failing.register()
source = TraceConfig.DataSource(config=DataSourceConfig(name=Failing.name))
buffer = TraceConfig.BufferConfig(size_kb=64)
with stretto.TracingSession(TraceConfig(buffers=[buffer], data_sources=[source])) as session:
    session.stop()
    print(len(session.read()) > 0)
"""


def test_exception_of_a_callback_is_printed_in_a_program_without_pytest():
    """Pytest replaces the interpreter's hook for unraisable exceptions by its own."""
    run = subprocess.run(
        [sys.executable, "-c", OUTSIDE_PYTEST],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "True\n")
    assert "told to fail" in run.stderr
