"""Which processes `linux.perf` takes stacks of: PerfEventConfig.Scope.

    excluded by pid or command line      no
    a target by pid or command line      yes
    no target, shard or additional ones  yes
    process_shard_count                  one process in so many, by its pid
    additional_cmdline_count             the first so many other command lines

A command line is compared by its program (argv[0]). A pattern that begins with `/` must match the
whole path, another one the file's name; `*` stands for any text.
"""

from __future__ import annotations

import re

from stretto.protos.config import PerfEventConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Scope:
    """The processes that a session wants stacks of.

    Args:
        config: The session's config.
        shard: The chosen shard, from 0 to `process_shard_count` - 1.
    """

    def __init__(self, config: PerfEventConfig, shard: int = 0) -> None:
        stacks = config.callstack_sampling
        scope = (stacks and stacks.scope) or PerfEventConfig.Scope(
            target_pid=config.target_pid,
            target_cmdline=config.target_cmdline,
            exclude_pid=config.exclude_pid,
            exclude_cmdline=config.exclude_cmdline,
            additional_cmdline_count=config.additional_cmdline_count,
        )
        self._pids, self._excluded_pids = set(scope.target_pid), set(scope.exclude_pid)
        self._patterns = _compiled(scope.target_cmdline)
        self._excluded_patterns = _compiled(scope.exclude_cmdline)
        self._most_additional = scope.additional_cmdline_count
        self._additional: set[str] = set()
        self._shards, self._shard = scope.process_shard_count, shard
        self._is_open = not (self._pids or self._patterns or self._most_additional or self._shards)

    def has(self, pid: int, program: str) -> bool:
        """Return whether a process is wanted.

        Args:
            pid: The process.
            program: Its argv[0]; "" for a thread of the kernel.
        """
        if pid in self._excluded_pids or _matches(self._excluded_patterns, program):
            return False
        if self._is_open or pid in self._pids or _matches(self._patterns, program):
            return True
        if self._shards:
            return pid % self._shards == self._shard
        return self._is_additional(program)

    def _is_additional(self, program: str) -> bool:
        if program and len(self._additional) < self._most_additional:
            self._additional.add(program)
        return program in self._additional


def _compiled(patterns: Iterable[str]) -> list[tuple[bool, re.Pattern[str]]]:
    """Return for each pattern whether it is one of a whole path, and its expression."""
    return [
        (pattern.startswith("/"), re.compile(".*".join(map(re.escape, pattern.split("*"))), re.S))
        for pattern in patterns
    ]


def _matches(patterns: list[tuple[bool, re.Pattern[str]]], program: str) -> bool:
    name = program.rpartition("/")[2]
    return bool(program) and any(
        expression.fullmatch(program if whole else name) for whole, expression in patterns
    )
