r"""Rules that rewrite strings: text that matches a group of a regular expression is redacted.

Rules are tried in order until one matches. A rule with a *break* policy then keeps the string.
Other rules overwrite the text of their groups; the string keeps its length::

    B\|\d+\|foo (.*)      B|1234|foo 1234 bar baz  ->  B|1234|foo P60REDACTED-

The `ATRACE_` policies are for the text format of Android's tracing, `B|pid|payload`: the
beginning of the payload is compared before the expression is tried.

Expressions match bytes, in the common syntax of Python, RE2, PCRE and ECMAScript. An expression is
refused if its meaning differs between these four (POSIX classes such as `[[:alpha:]]`), or if it
can't be matched in linear time (back references, lookaround).
"""

from __future__ import annotations

import re

from stretto.base.errors import ConfigError
from stretto.protozero.filter.string_pattern import StringPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from stretto.protozero.filter.string_pattern import Spans

MATCH_REDACT_GROUPS: Final = 1
ATRACE_MATCH_REDACT_GROUPS: Final = 2
MATCH_BREAK: Final = 3
ATRACE_MATCH_BREAK: Final = 4
ATRACE_REPEATED_SEARCH_REDACT_GROUPS: Final = 5

UNSPECIFIED: Final = 0
"""The semantic type of strings without one."""
ATRACE: Final = 1
JOB: Final = 2
WAKELOCK: Final = 3
SEMANTIC_TYPE_LIMIT: Final = 128
"""Rules can't name types from this one on; every rule applies to strings of these types."""

_POLICIES = range(MATCH_REDACT_GROUPS, ATRACE_REPEATED_SEARCH_REDACT_GROUPS + 1)
_BREAKS = (MATCH_BREAK, ATRACE_MATCH_BREAK)
_FULL_MATCHES = (MATCH_REDACT_GROUPS, MATCH_BREAK)
_REDACTED = b"P60REDACTED"
_POSIX_CLASS = re.compile(r"\[[:.=]\^?\w*[:.=]\]")


class StringRule:
    """A rule that rewrites or keeps matching strings.

    Args:
        policy: How to match, and whether to redact: MATCH_BREAK or another constant of this module.
        pattern: A regular expression that must match the whole string; with
            ATRACE_REPEATED_SEARCH_REDACT_GROUPS it is searched repeatedly.
        atrace_payload_starts_with: Required beginning of the payload, for the ATRACE_ policies.
        name: Name of the rule; a rule that is added later with the same name replaces it.
        semantic_types: Types of the strings that the rule applies to; empty for UNSPECIFIED.

    Raises:
        ConfigError: The policy, the pattern or a type is invalid.
    """

    __slots__ = ("_pattern", "_prefix", "name", "policy", "semantic_types")

    def __init__(
        self,
        policy: int,
        pattern: str,
        *,
        atrace_payload_starts_with: str = "",
        name: str = "",
        semantic_types: Iterable[int] = (),
    ) -> None:
        if policy not in _POLICIES:
            raise ConfigError(
                f"string filter policy {policy} is unknown: use one from {_POLICIES.start} to "
                f"{_POLICIES.stop - 1}"
            )
        self.policy = policy
        self.name = name
        self.semantic_types = frozenset(semantic_types) or frozenset([UNSPECIFIED])
        for semantic_type in self.semantic_types:
            if not 0 <= semantic_type < SEMANTIC_TYPE_LIMIT:
                raise ConfigError(
                    f"semantic type {semantic_type} of a string rule isn't below "
                    f"{SEMANTIC_TYPE_LIMIT}"
                )
        self._pattern = _compile(pattern)
        self._prefix = atrace_payload_starts_with.encode("utf-8", "surrogateescape")

    def concerns(self, semantic_type: int) -> bool:
        """Return whether the rule applies to strings of this type."""
        return semantic_type >= SEMANTIC_TYPE_LIMIT or semantic_type in self.semantic_types

    def apply(self, text: bytes) -> tuple[bool, bytes]:
        """Return whether the rule matches, and the rewritten text."""
        if self.policy not in _FULL_MATCHES and not self._payload_fits(text):
            return False, text
        if self.policy == ATRACE_REPEATED_SEARCH_REDACT_GROUPS:
            matches = self._pattern.find_all(text)
        else:
            match = self._pattern.full_match(text)
            matches = [match] if match else []
        if not matches or self.policy in _BREAKS:
            return bool(matches), text
        return True, _redact(text, matches)

    def _payload_fits(self, text: bytes) -> bool:
        # "E|pid" ends a slice and has no payload; it is the most frequent text.
        if text.startswith(b"E"):
            return False
        pipe = text.find(b"|", 2)
        return pipe >= 0 and text.startswith(self._prefix, pipe + 1)


def _compile(pattern: str) -> StringPattern:
    posix_class = _POSIX_CLASS.search(pattern)
    if posix_class:
        raise ConfigError(
            f"the regular expression {pattern!r} of a string rule has the class "
            f"{posix_class[0]!r}: write out the characters, as in [0-9A-Za-z]"
        )
    try:
        return StringPattern(pattern)
    except ConfigError as error:
        raise ConfigError(
            f"the regular expression {pattern!r} of a string rule can't be used: {error}"
        ) from error


def _redact(text: bytes, matches: Iterable[Spans]) -> bytes:
    out = bytearray(text)
    for match in matches:
        for start, end in match[1:]:
            size = end - start  # 0 if the group wasn't part of the match
            out[start:end] = _REDACTED[:size].ljust(size, b"-")
    return bytes(out)


class StringFilter:
    """A chain of rules, callable by `stretto._native.MessageFilter`."""

    __slots__ = ("_by_type", "_rules")

    def __init__(self, rules: Iterable[StringRule] = ()) -> None:
        self._rules: list[StringRule] = []
        self._by_type: dict[int, tuple[StringRule, ...]] = {}
        for rule in rules:
            self.add(rule)

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, rule: StringRule) -> None:
        """Append a rule, or replace the rule with the same name."""
        self._by_type.clear()
        names = [known.name for known in self._rules]
        if rule.name and rule.name in names:
            self._rules[names.index(rule.name)] = rule
        else:
            self._rules.append(rule)

    def __call__(self, text: bytes, semantic_type: int = UNSPECIFIED) -> bytes | None:
        """Return the text as rewritten by the first matching rule; None to keep it."""
        for rule in self._rules_for(semantic_type):
            matches, rewritten = rule.apply(text)
            if matches:
                return None if rule.policy in _BREAKS else rewritten
        return None

    def _rules_for(self, semantic_type: int) -> tuple[StringRule, ...]:
        known = min(semantic_type, SEMANTIC_TYPE_LIMIT)
        rules = self._by_type.get(known)
        if rules is None:
            rules = tuple(rule for rule in self._rules if rule.concerns(known))
            self._by_type[known] = rules
        return rules
