"""Regular expressions for producer names are validated, and their total size is bounded."""

from __future__ import annotations

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.config import TraceConfig
from stretto.service.session.config_validation import check_config
from stretto.service.session.configured_triggers import compile_triggers
from stretto.service.session.name_filter import (
    MAX_KNOWN_NAMES,
    MAX_TOTAL_SIZE,
    NameFilter,
    RegexCompiler,
)
from tests.support.service_setup import make_config

BAD = ["a{99999999999}", "(" * 4000 + ")" * 4000, "(", "(?=a)", r"(a)\1"]


def filtered(*patterns):
    """Return a config for data source `ds` of producers whose names match one of the patterns."""
    config = make_config("other", "ds")
    config.data_sources[1].producer_name_regex_filter = patterns
    return config


def triggered(pattern):
    trigger = TraceConfig.TriggerConfig.Trigger(name="go", producer_name_regex=pattern)
    waits = TraceConfig.TriggerConfig(
        trigger_mode=1, triggers=[trigger], trigger_timeout_ms=1000
    )  # fmt: skip
    return make_config("ds", trigger_config=waits)


@pytest.mark.parametrize("pattern", BAD, ids=lambda pattern: pattern[:20])
class TestInvalidExpressions:
    def test_invalid_expression_of_a_filter_is_refused_with_its_field_path(self, setup, pattern):
        setup.producer("ds")
        consumer = setup.enable(filtered("fine", pattern))
        (error,) = consumer.disabled
        assert "data_sources[1].producer_name_regex_filter" in error
        assert len(error) < 400
        assert not setup.service.sessions

    def test_invalid_expression_of_a_trigger_is_refused_with_its_field_path(self, setup, pattern):
        consumer = setup.enable(triggered(pattern))
        (error,) = consumer.disabled
        assert "trigger_config.triggers[0].producer_name_regex" in error

    def test_session_with_an_invalid_filter_does_not_affect_other_sessions(self, setup, pattern):
        setup.enable(filtered(pattern))
        setup.enable(filtered("good.*"))
        producer = setup.producer("ds", name="good one")
        setup.run()
        assert ("start", "ds") in producer.calls

    def test_changed_config_with_an_invalid_expression_has_no_effect(self, setup, pattern):
        consumer = setup.enable(filtered("one"))
        consumer.endpoint.change_trace_config(filtered("two", pattern).encode())
        one, two = (setup.producer("ds", name=name) for name in ("one", "two"))
        setup.run()
        assert ("start", "ds") in one.calls
        assert two.calls == ["connect"] or ("start", "ds") not in two.calls


def test_total_size_of_filter_expressions_is_limited():
    config = filtered(*["a" * 500] * (MAX_TOTAL_SIZE // 500 + 1))
    with pytest.raises(ConfigError, match="steps"):
        check_config(config, has_fd=False)


def test_total_size_of_trigger_expressions_is_limited():
    triggers = TraceConfig.TriggerConfig(
        triggers=[
            TraceConfig.TriggerConfig.Trigger(name=str(number), producer_name_regex="a{1000}")
            for number in range(MAX_TOTAL_SIZE // 1000 + 1)
        ]
    )
    with pytest.raises(ConfigError, match=r"triggers\[3\]"):
        compile_triggers(triggers)


def test_expressions_with_exponential_backtracking_match_in_bounded_time(setup):
    """Python's `re` needs exponential time for these expressions."""
    setup.enable(filtered("(a+)+$", "(a|a)*b", "(.*)*(.*)*(.*)*x"))
    producer = setup.producer("ds", name="a" * 250 + "!")
    setup.run()
    assert ("start", "ds") not in producer.calls


def test_filter_without_conditions_matches_every_name():
    assert NameFilter((), ()).matches("any")
    assert not NameFilter(("one",), ()).matches("any")


def test_number_of_cached_names_is_bounded():
    names = NameFilter((), [RegexCompiler().compile("a.*", "field")])
    for number in range(2 * MAX_KNOWN_NAMES):
        assert names.matches(f"a{number}")
        assert not names.matches(f"b{number}")
        assert len(names._known) <= MAX_KNOWN_NAMES
