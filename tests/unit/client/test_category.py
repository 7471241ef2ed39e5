"""Each category name has one object; sessions enable categories."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import config, events_of, record


def test_categories_of_the_same_name_are_the_same_object():
    first = stretto.Category("cat.same", "described", ["one", "two"])
    assert stretto.Category("cat.same") is first
    assert stretto.Category("cat." + "".join(["s", "ame"])) is first
    assert (first.name, first.description, first.tags) == ("cat.same", "described", ("one", "two"))


def test_category_exists_after_its_last_reference_is_deleted():
    identity = id(stretto.Category("cat.lives"))
    gc.collect()
    assert id(stretto.Category("cat.lives")) == identity


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a*", "*"])
def test_invalid_category_names_are_refused(name):
    with pytest.raises(ValueError, match="category name"):
        stretto.Category(name)


@pytest.mark.parametrize("name", [None, 5, b"bytes"])
def test_category_name_that_is_no_str_is_refused(name):
    with pytest.raises(TypeError, match="must be a str"):
        stretto.Category(name)


def test_category_name_with_surrogates_is_refused():
    with pytest.raises(UnicodeEncodeError):
        stretto.Category("cat.\ud800")


@pytest.mark.parametrize("tags", ["slow", [1, 2], list("abcde"), ["a", None]])
def test_invalid_category_tags_are_refused(tags):
    with pytest.raises(ValueError, match="at most 4 str"):
        stretto.Category("cat.tags", tags=tags)


def test_tags_that_are_not_iterable_are_refused():
    with pytest.raises(TypeError):
        stretto.Category("cat.tags", tags=5)


def test_pickle_and_copy_return_the_same_category():
    category = stretto.Category("cat.pickled", "d", ["slow"])
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(category, protocol)) is category
    assert copy.copy(category) is category
    assert copy.deepcopy([category])[0] is category


def test_name_of_a_str_subclass_is_converted_to_str():
    class Name(str):
        __slots__ = ()

    category = stretto.Category(Name("cat.subclass"))
    assert type(category.name) is str
    assert stretto.Category("cat.subclass") is category


def test_category_attributes_cannot_be_set():
    category = stretto.Category("cat.fixed")
    with pytest.raises(AttributeError):
        category.name = "other"


def test_category_is_enabled_while_a_session_records_it():
    wanted, unwanted = stretto.Category("cat.wanted"), stretto.Category("cat.unwanted")
    assert not wanted.enabled
    with record(enabled=["cat.wanted"], disabled=["*"]):
        assert wanted.enabled
        assert not unwanted.enabled
    assert not wanted.enabled


def test_category_is_enabled_until_its_last_session_ends():
    category = stretto.Category("cat.two")
    with record():
        with record():
            assert category.enabled
        assert category.enabled
    assert not category.enabled


def test_category_created_during_a_session_is_enabled_by_its_config():
    with record(enabled=["cat.late*"], disabled=["*"]) as wants, record(disabled=["cat.*"]) as not_:
        category = stretto.Category("cat.late1")
        category.instant("in")
        assert not stretto.Category("cat.other").enabled
    assert wants.event.name == "in"
    assert not_.events == []


def test_tags_added_later_disable_a_category():
    stretto.Category("cat.tagged.later")
    with record():
        assert stretto.Category("cat.tagged.later").enabled
        category = stretto.Category("cat.tagged.later", tags=["slow"])
        assert not category.enabled


def test_eight_concurrent_data_source_instances_record_the_same_category():
    """Four sessions with two data sources each reach the limit of eight instances."""
    sessions = [session_of_two() for _ in range(4)]
    category = stretto.Category("cat.eight")
    category.instant("to all")
    with category.slice("slice", number=1):
        category.counter("counter", 5)
    for session in sessions:
        session.stop()
        events = events_of(session.read())
        session.close()
        assert sorted(event.kind for event in events) == sorted([3, 1, 4, 2] * 2)
        assert len({event.sequence for event in events}) == 2
    assert not category.enabled


def session_of_two():
    made = config()
    made.data_sources.append(made.data_sources[0])
    session = stretto.TracingSession(made)
    session.start()
    return session


def test_ninth_session_gets_no_events_and_an_error_is_reported(monkeypatch):
    complaints = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: complaints.append(str(args.exc_value)))
    sessions = [session_of_two() for _ in range(4)]
    with record() as ninth:
        stretto.instant("event")
    assert ninth.events == []
    assert complaints == [
        "8 sessions record track events already: this one gets none. Stop one of them first."
    ]
    for session in sessions:
        session.stop()
        assert len(events_of(session.read())) == 2
        session.close()
    with record() as again:
        stretto.instant("event")
    assert len(again.events) == 1


def test_repr_contains_the_category_name():
    assert repr(stretto.Category("cat.repr")) == "stretto.Category('cat.repr')"


def test_all_categories_are_listed():
    category = stretto.Category("cat.listed")
    assert category in _native.categories()
