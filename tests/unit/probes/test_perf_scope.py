"""Which processes `linux.perf` takes stacks of."""

from __future__ import annotations

from stretto.probes.perf_scope import Scope
from stretto.protos.config import PerfEventConfig


def scope(shard: int = 0, **fields: object) -> Scope:
    stacks = PerfEventConfig.CallstackSampling(
        scope=PerfEventConfig.Scope(**fields)  # type: ignore[arg-type]
    )
    return Scope(PerfEventConfig(callstack_sampling=stacks), shard)


def test_without_a_scope_all_processes_are_wanted() -> None:
    assert Scope(PerfEventConfig()).has(1, "/bin/sh")
    assert scope().has(2, "")


def test_targets_are_pids_and_patterns_of_the_program() -> None:
    wanted = scope(target_pid=[5], target_cmdline=["py*3", "/opt/*/run"])
    assert wanted.has(5, "/bin/sh")
    assert wanted.has(6, "/usr/bin/python3")
    assert wanted.has(6, "/opt/shop/run")
    assert not wanted.has(6, "/opt/shop/run2")
    assert not wanted.has(6, "/usr/bin/python3.12")
    assert not wanted.has(6, "")


def test_exclusions_come_before_targets() -> None:
    wanted = scope(target_pid=[5, 6], exclude_pid=[5], exclude_cmdline=["sh"])
    assert not wanted.has(5, "python")
    assert not wanted.has(6, "/bin/sh")
    assert wanted.has(6, "/bin/bash")
    assert scope(exclude_pid=[5]).has(7, "x")


def test_patterns_are_texts_but_for_asterisks() -> None:
    assert not scope(target_cmdline=["a.c"]).has(1, "abc")
    assert scope(target_cmdline=["a[1]*"]).has(1, "a[1]x")


def test_additional_processes_are_the_first_other_programs() -> None:
    wanted = scope(target_cmdline=["shop"], additional_cmdline_count=1)
    assert wanted.has(1, "first")
    assert not wanted.has(2, "second")
    assert wanted.has(3, "first")
    assert wanted.has(4, "shop")
    assert not wanted.has(5, "")


def test_shard_has_one_pid_in_so_many() -> None:
    wanted = scope(2, process_shard_count=4, exclude_pid=[6])
    assert [pid for pid in range(12) if wanted.has(pid, "x")] == [2, 10]


def test_fields_of_old_configs_are_a_scope() -> None:
    wanted = Scope(PerfEventConfig(all_cpus=True, target_pid=[3]))
    assert wanted.has(3, "x")
    assert not wanted.has(4, "x")
