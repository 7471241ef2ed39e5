"""Sessions that affect each other: exclusive sessions, lockdown, boosts, semaphores."""

from __future__ import annotations

import errno

import pytest

from stretto.base.errors import SessionError
from stretto.protos.config import PriorityBoostConfig, TraceConfig
from stretto.service.limits import MAX_CONCURRENT_SESSION_EVENTS
from stretto.service.output.concurrent_sessions import ConcurrentSessions
from tests.support.service_setup import UID, Setup, make_config, texts

CLEAR, SET = 1, 2


class TestExclusiveSessions:
    def test_exclusive_session_blocks_new_sessions(self, setup):
        setup.enable(make_config(exclusive_prio=1))
        for priority in (0, 1):
            refused = setup.enable(make_config(exclusive_prio=priority))
            expected = "session with priority 1 >= requested priority {} is already active."
            assert refused.disabled == ["An exclusive " + expected.format(priority)]

    def test_exclusive_session_aborts_running_sessions(self, setup):
        producer = setup.producer("ds")
        others = [setup.enable(make_config("ds")) for _ in range(2)]
        setup.write(producer, "data")
        exclusive = setup.enable(make_config("ds", exclusive_prio=1))
        for other in others:
            (error,) = other.disabled
            assert error == ("Aborted due to user requested higher-priority (1) exclusive session.")
            assert setup.read(other) == []
            assert other.endpoint.session is None
        assert not exclusive.disabled
        setup.write(producer, "mine")
        assert texts(setup.read(exclusive)) == ["mine"]

    def test_exclusive_session_aborts_an_exclusive_session_of_lower_priority(self, setup):
        lower = setup.enable(make_config(exclusive_prio=1))
        higher = setup.enable(make_config(exclusive_prio=2))
        assert "(2)" in lower.disabled[0]
        assert not higher.disabled

    def test_ended_exclusive_session_does_not_block_new_sessions(self, setup):
        first = setup.enable(make_config(exclusive_prio=1))
        first.endpoint.disable_tracing()
        assert not setup.enable(make_config()).disabled

    def test_invalid_exclusive_config_aborts_no_session(self, setup):
        running = setup.enable(make_config())
        assert setup.enable(make_config(exclusive_prio=1, size_kb=0)).disabled
        assert not running.disabled


class TestLockdownMode:
    def test_lockdown_excludes_producers_of_other_users_until_it_is_cleared(self, setup):
        theirs, ours = setup.producer("ds", uid=5), setup.producer("ds", uid=UID)
        setup.enable(make_config("ds", lockdown_mode=SET))
        assert ("start", "ds") not in theirs.calls
        assert ("start", "ds") in ours.calls
        with pytest.raises(SessionError, match="locked down"):
            setup.producer("ds", uid=5)
        setup.producer("ds", uid=UID)
        setup.enable(make_config("ds"))  # Lockdown outlasts the session that set it.
        assert ("start", "ds") not in theirs.calls
        setup.enable(make_config("ds", lockdown_mode=CLEAR))
        assert ("start", "ds") in theirs.calls
        setup.producer("ds", uid=5)

    @pytest.mark.parametrize("remote", [{"machine_id": 9}, {"shm_emulation": True}])
    def test_lockdown_refuses_remote_producers_of_any_claimed_uid(self, setup, remote):
        remote = {"uid": UID, "in_process": False} | remote
        before = setup.producer("ds", **remote)
        setup.enable(make_config("ds", lockdown_mode=SET, trace_all_machines=True))
        assert ("start", "ds") not in before.calls
        with pytest.raises(SessionError, match="locked down"):
            setup.producer("ds", **remote)


class TestPriorityBoost:
    class Scheduler:
        def __init__(self, refuse=False):
            self.calls = []
            self.refuse = refuse

        def boost(self, policy, priority):
            if self.refuse:
                raise PermissionError(errno.EPERM, "Operation not permitted")
            self.calls.append((policy, priority))

        def restore(self):
            self.calls.append("restore")

    def config(self, policy, priority):
        boost = PriorityBoostConfig(policy=policy, priority=priority)
        return make_config(priority_boost=boost)

    def test_strongest_priority_boost_of_all_existing_sessions_is_applied(self):
        scheduler = self.Scheduler()
        setup = Setup(scheduler=scheduler)
        other = setup.enable(self.config(1, 20))
        fifo = setup.enable(self.config(2, 1))
        setup.enable(self.config(1, 5))
        assert scheduler.calls == [(1, 20), (2, 1), (2, 1)]
        fifo.endpoint.free_buffers()
        assert scheduler.calls[-1] == (1, 20)
        other.endpoint.free_buffers()
        assert scheduler.calls[-1] == (1, 5)
        setup.session().free()
        assert scheduler.calls[-1] == "restore"

    @pytest.mark.parametrize(("policy", "priority"), [(0, 1), (1, 21), (2, 0), (2, 100), (9, 1)])
    def test_invalid_priority_boosts_are_refused(self, policy, priority):
        scheduler = self.Scheduler()
        consumer = Setup(scheduler=scheduler).enable(self.config(policy, priority))
        assert "priority_boost" in consumer.disabled[0]
        assert not scheduler.calls

    def test_priority_boost_without_permission_is_refused(self):
        consumer = Setup(scheduler=self.Scheduler(refuse=True)).enable(self.config(2, 1))
        assert "Operation not permitted" in consumer.disabled[0]

    def test_priority_boost_is_undone_if_enabling_the_session_fails(self, tmp_path):
        scheduler = self.Scheduler()
        config = self.config(2, 1)
        config.write_into_file, config.output_path = True, str(tmp_path / "no" / "folder")
        setup = Setup(scheduler=scheduler)
        assert setup.enable(config).disabled
        assert scheduler.calls == [(2, 1), "restore"]


class TestConcurrentSessionEvents:
    def rows(self, packets):
        return [
            (e.session_id, e.state, e.session_name, e.consumer_uid, e.num_data_sources)
            for e in (
                p.concurrent_session_event for p in packets if p.has("concurrent_session_event")
            )
        ]

    def observing_config(self, **fields):
        builtin = TraceConfig.BuiltinDataSource(enable_concurrent_session_events=True)
        return make_config(builtin_data_sources=builtin, **fields)

    def test_states_of_concurrent_sessions_are_in_the_trace(self, setup):
        ended = setup.enable(make_config("a", unique_session_name="ended"), setup.consumer(7))
        ended.endpoint.disable_tracing()
        setup.enable(make_config(unique_session_name="running", deferred_start=True))
        consumer = setup.enable(self.observing_config())
        assert self.rows(setup.read(consumer)) == [(1, 1, "ended", 7, 1), (2, 2, "running", UID, 0)]
        later = setup.enable(make_config("a", "b"))
        later.endpoint.disable_tracing()
        clone = setup.consumer()
        clone.clone(consumer.endpoint.session_id)
        setup.run()
        packets = setup.read(consumer)
        assert [each[:2] for each in self.rows(packets)] == [(4, 2), (4, 3), (4, 1), (5, 5)]
        assert self.rows(packets)[0][4] == 2
        assert setup.clock.boottime_ns() in {p.timestamp for p in packets}

    def test_concurrent_session_events_are_opt_in(self, setup):
        consumer = setup.enable(make_config())
        setup.enable(self.observing_config())
        assert self.rows(setup.read(consumer)) == []

    def test_events_about_other_sessions_are_recorded_only_if_the_session_is_started(self, setup):
        consumer = setup.enable(self.observing_config(deferred_start=True))
        setup.enable(make_config())
        consumer.endpoint.start_tracing()
        consumer.endpoint.disable_tracing()
        setup.enable(make_config())
        assert [each[:2] for each in self.rows(setup.read(consumer))] == [(2, 3)]

    def test_number_of_events_about_other_sessions_is_bounded(self, setup):
        setup.enable(make_config())
        events = ConcurrentSessions(setup.clock)
        for _ in range(MAX_CONCURRENT_SESSION_EVENTS + 3):
            events.note(setup.session())
        assert len(events.take(setup.service.context.packets)) == MAX_CONCURRENT_SESSION_EVENTS
        assert events.take(setup.service.context.packets) == []


class TestSessionSemaphores:
    def enable(self, setup, limit):
        wanted = TraceConfig.SessionSemaphore(name="s", max_other_session_count=limit)
        return setup.enable(make_config(session_semaphores=[wanted]), setup.consumer(limit + 1))

    def test_semaphore_of_limit_0_allows_one_session(self, setup):
        assert not self.enable(setup, 0).disabled

    def test_second_session_with_semaphore_limit_0_is_refused_until_the_first_session_ends(
        self, setup
    ):
        first = self.enable(setup, 0)
        assert "semaphore" in self.enable(setup, 0).disabled[0].lower()
        first.endpoint.disable_tracing()
        assert not self.enable(setup, 0).disabled

    def test_semaphore_of_a_running_session_limits_a_session_with_a_higher_limit(self, setup):
        self.enable(setup, 0)
        assert self.enable(setup, 1).disabled

    def test_semaphore_of_a_new_session_counts_sessions_with_higher_limits(self, setup):
        self.enable(setup, 1)
        assert self.enable(setup, 0).disabled

    def test_semaphore_allows_sessions_up_to_its_limit(self, setup):
        assert not any(self.enable(setup, 3).disabled for _ in range(4))
        assert self.enable(setup, 3).disabled

    def test_clones_hold_no_semaphore(self, setup):
        first = self.enable(setup, 0)
        clone = setup.consumer(0)
        clone.clone(first.endpoint.session_id)
        setup.run()
        assert clone.clones[0].success
        first.endpoint.free_buffers()
        assert not self.enable(setup, 0).disabled


def test_consumer_disconnect_during_the_final_flush_ends_the_session(setup):
    """The final flush is pending when the consumer disconnects."""
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds", duration_ms=100))
    setup.advance(100)
    request, _, _ = producer.flushes[-1]
    consumer.endpoint.disconnect()
    producer.answer_flush(request)
    setup.run()
    assert not setup.service.sessions
    assert not consumer.connected
    setup.advance(60_000)
    assert producer.calls[-1] == ("stop", "ds")
