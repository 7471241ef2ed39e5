"""Rules that rewrite strings, with the cases of Perfetto's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.protozero.filter import strings
from stretto.protozero.filter.strings import StringFilter, StringRule

FOO = r"B\|\d+\|foo (.*)"


def redact(pattern: str, **arguments: Any) -> StringRule:
    return StringRule(strings.MATCH_REDACT_GROUPS, pattern, **arguments)


def atrace(pattern: str, prefix: str = "", **arguments: Any) -> StringRule:
    policy = strings.ATRACE_MATCH_REDACT_GROUPS
    return StringRule(policy, pattern, atrace_payload_starts_with=prefix, **arguments)


def search(pattern: str, prefix: str = "") -> StringRule:
    policy = strings.ATRACE_REPEATED_SEARCH_REDACT_GROUPS
    return StringRule(policy, pattern, atrace_payload_starts_with=prefix)


def run(text: str | bytes, *rules: StringRule, semantic_type: int = 0) -> str | None:
    """Apply the rules; return the new text, or None if they don't change it."""
    data = text.encode() if isinstance(text, str) else text
    result = StringFilter(rules)(data, semantic_type)
    assert result is None or len(result) == len(data)
    return None if result is None else result.decode()


class TestRegexRules:
    def test_groups_of_a_match_are_redacted(self) -> None:
        assert run("B|1234|foo 1234 bar baz", redact(FOO)) == "B|1234|foo P60REDACTED-"

    def test_replacement_is_cut_to_the_length_of_the_group(self) -> None:
        assert run("B|1234|foo 1234", redact(FOO)) == "B|1234|foo P60R"

    def test_text_without_a_match_is_unchanged(self) -> None:
        assert run("B|1234|fooo 1234", redact(FOO)) is None
        assert run("xB|1234|foo 1234", redact(FOO)) is None
        assert run("B|1234|foo 1\n", redact(FOO)) is None

    def test_unmatched_optional_groups_are_ignored(self) -> None:
        assert run("ab", redact("(a)(x)?(b)")) == "PP"

    def test_match_of_a_regex_without_groups_ends_the_search(self) -> None:
        assert run("ab", redact("a."), redact("(a)b")) == "ab"

    @pytest.mark.parametrize("rule", [redact(FOO), atrace(FOO)])
    @pytest.mark.parametrize("text", [b"\xff", b"\x0a\x03foo\x18\x64", b"", b"B"])
    def test_non_matching_bytes_are_unchanged(self, rule: StringRule, text: bytes) -> None:
        assert run(text, rule) is None

    def test_each_byte_of_a_multibyte_character_is_redacted(self) -> None:
        assert run("x é", redact("x (.*)")) == "x P6"
        rule = redact("(é+)y")
        assert StringFilter([rule])("éy".encode()) == b"P6y"

    @pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[[:alpha:]]", "[a[:^digit:]]", "[[=a=]]"])
    def test_unsupported_or_invalid_expressions_are_refused(self, pattern: str) -> None:
        with pytest.raises(ConfigError, match="regular expression"):
            redact(pattern)


class TestAtraceRules:
    def test_event_with_the_prefix_is_redacted(self) -> None:
        assert run("B|1234|foo 1234", atrace(FOO, "foo")) == "B|1234|foo P60R"

    def test_rule_without_a_prefix_redacts_every_matching_event(self) -> None:
        assert run("B|1234|foo 1234", atrace(FOO)) == "B|1234|foo P60R"

    def test_prefix_may_be_the_whole_payload(self) -> None:
        assert run("B|1234|foo 1234", atrace(FOO, "foo 1234")) == "B|1234|foo P60R"

    def test_empty_payload_matches_only_without_a_prefix(self) -> None:
        assert run("B|1234|", atrace(r"B\|(\d+)\|")) == "B|P60R|"
        assert run("B|1234|", atrace(r"B\|(\d+)\|", "x")) is None

    def test_prefix_longer_than_the_payload_does_not_match(self) -> None:
        assert run("B|1234|foo 1234", atrace(FOO, "foo 1234 5")) is None

    def test_event_without_the_prefix_or_without_a_match_is_unchanged(self) -> None:
        assert run("B|1234|foo 1234", atrace(FOO, "bar")) is None
        assert run("B|1234|fooo 1234", atrace(FOO, "foo")) is None

    def test_end_event_is_not_redacted(self) -> None:
        assert run("E|1234|foo 1234", atrace(r".\|\d+\|foo (.*)", "foo")) is None

    @pytest.mark.parametrize("text", ["foobar", "B|", "B||", "B|1234", "E|1234", "E|", "E"])
    def test_text_that_is_no_atrace_event_is_unchanged(self, text: str) -> None:
        assert run(text, atrace("(.*)", "")) == (None if text != "B||" else "P60")

    def test_each_rule_applies_to_its_prefix(self) -> None:
        rules = atrace(r"B\|\d+\|bar (.*)", "bar"), atrace(FOO, "foo")
        assert run("B|1|foo 12", *rules) == "B|1|foo P6"
        assert run("B|1|bar 12", *rules) == "B|1|bar P6"
        assert run("B|1|baz 12", *rules) is None


class TestOrderOfRules:
    def test_plain_and_atrace_rules_can_be_mixed(self) -> None:
        rules = redact(FOO), atrace(r"B\|\d+\|bar (.*)", "bar")
        assert run("B|1|foo 12", *rules) == "B|1|foo P6"
        assert run("B|1|bar 12", *rules) == "B|1|bar P6"

    def test_break_rule_ends_the_search_without_a_change(self) -> None:
        rules = StringRule(strings.MATCH_BREAK, r"B\|\d+\|foo bar"), redact(FOO)
        assert run("B|1|foo bar", *rules) is None
        assert run("B|1|foo bart", *rules) == "B|1|foo P60R"

    def test_atrace_break_rule_applies_only_to_its_prefix(self) -> None:
        policy = strings.ATRACE_MATCH_BREAK
        rule = StringRule(policy, ".*secret.*", atrace_payload_starts_with="foo")
        assert run("B|1|foo secret", rule, redact(FOO)) is None
        assert run("B|1|bar secret", rule, redact(r".*(secret)")) == "B|1|bar P60RED"

    def test_first_matching_rule_ends_the_search(self) -> None:
        assert run("ab", redact("(a)b"), redact("a(b)")) == "Pb"


class TestRepeatedSearchRules:
    def test_each_match_is_redacted(self) -> None:
        result = run("B|1234|foo x:1234 x:494 y:4904 x:dfja x:239039", search(r"x:(\d+)", "foo"))
        assert result == "B|1234|foo x:P60R x:P60 y:4904 x:dfja x:P60RED"

    def test_later_rules_are_skipped_after_a_match(self) -> None:
        assert run("B|1|foo x:1 y:1", search(r"x:(\d)", "foo"), redact("(.*)")) == "B|1|foo x:P y:1"

    def test_next_rule_is_tried_if_a_rule_does_not_match(self) -> None:
        assert run("B|1|foo x:a", search(r"x:(\d+)", "foo")) is None
        assert run("B|1|foo x:a", search(r"x:(\d+)", "foo"), redact("(.*)")) == "P60REDACTED"

    def test_groups_of_each_regex_alternative_are_redacted(self) -> None:
        result = run("B|1234|foo x:1234 x:494 y:4904 x:dfja", search(r"x:(\d+)|y:(\d+)", "foo"))
        assert result == "B|1234|foo x:P60R x:P60 y:P60R x:dfja"

    def test_replacement_text_is_not_searched(self) -> None:
        result = run("B|1234|foo x:1234 x:494 x:dfja x:239039", search(r"x:([^\s-]*)", "foo"))
        assert result == "B|1234|foo x:P60R x:P60 x:P60R x:P60RED"

    def test_event_without_the_prefix_of_the_rule_is_unchanged(self) -> None:
        assert run("B|1|bar x:1", search(r"x:(\d+)", "foo")) is None


class TestSemanticTypes:
    def test_rule_applies_only_to_its_semantic_type(self) -> None:
        rule = redact("(.*)", semantic_types=[strings.ATRACE])
        assert run("a", rule, semantic_type=strings.ATRACE) == "P"
        assert run("a", rule, semantic_type=strings.JOB) is None

    def test_rule_without_types_applies_to_unspecified_strings(self) -> None:
        assert run("a", redact("(.*)")) == "P"
        assert run("a", redact("(.*)"), semantic_type=strings.ATRACE) is None

    def test_strings_without_a_semantic_type_match_only_rules_for_unspecified_strings(self) -> None:
        rule = redact("(.*)", semantic_types=[strings.UNSPECIFIED])
        assert run("a", rule) == "P"
        assert run("a", rule, semantic_type=strings.JOB) is None
        assert run("a", redact("(.*)", semantic_types=[strings.JOB])) is None

    def test_rule_can_have_several_semantic_types(self) -> None:
        rule = redact("(.*)", semantic_types=[strings.ATRACE, strings.WAKELOCK, 127])
        found = [kind for kind in range(128) if run("a", rule, semantic_type=kind)]
        assert found == [strings.ATRACE, strings.WAKELOCK, 127]

    def test_first_rule_that_applies_to_the_semantic_type_is_used(self) -> None:
        rules = redact("(a)b", semantic_types=[1]), redact("a(b)", semantic_types=[1, 2])
        assert run("ab", *rules, semantic_type=1) == "Pb"
        assert run("ab", *rules, semantic_type=2) == "aP"

    def test_strings_with_a_semantic_type_above_127_match_every_rule(self) -> None:
        """Rules can't name a type above 127; for safety, every rule applies to such a string."""
        rule = redact("(.*)", semantic_types=[strings.JOB])
        for kind in (128, 129, 0xFFFD):
            assert run("a", rule, semantic_type=kind) == "P"
        with pytest.raises(ConfigError, match="semantic type 128"):
            redact("x", semantic_types=[128])
        with pytest.raises(ConfigError, match="semantic type -1"):
            redact("x", semantic_types=[-1])

    def test_rule_of_any_policy_applies_only_to_its_semantic_types(self) -> None:
        policy = strings.ATRACE_MATCH_BREAK
        rules = StringRule(policy, ".*", semantic_types=[1]), atrace(FOO, "foo", semantic_types=[2])
        assert run("B|1|foo 1", *rules, semantic_type=1) is None
        assert run("B|1|foo 1", *rules, semantic_type=2) == "B|1|foo P"


class TestRuleReplacementByName:
    def test_rule_of_the_same_name_replaces_the_old_rule_in_place(self) -> None:
        chain = StringFilter([redact("(a)b", name="x"), redact("(ab)", name="y")])
        assert chain(b"ab") == b"Pb"
        chain.add(redact("a(b)", name="x"))
        assert len(chain) == 2
        assert chain(b"ab") == b"aP"

    def test_rules_without_a_name_are_all_kept(self) -> None:
        chain = StringFilter([redact("(a)"), redact("(b)"), redact("(c)", name="c")])
        assert len(chain) == 3
        assert [chain(text) for text in (b"a", b"b", b"c", b"d")] == [b"P", b"P", b"P", None]


@pytest.mark.parametrize("policy", [0, 6, -1])
def test_unknown_policy_of_a_rule_is_refused(policy: int) -> None:
    with pytest.raises(ConfigError, match="policy"):
        StringRule(policy, "x")
