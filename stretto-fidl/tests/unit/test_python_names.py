from __future__ import annotations

import pytest

from stretto_fidl.bindings import Bits, Enum, Struct, Table, Union
from stretto_fidl.python_names import (
    LIBRARY,
    NAME,
    OF_NUMBERS,
    OF_RECORDS,
    OF_UNIONS,
    module_name,
    python_name,
)


def public(cls: type) -> set[str]:
    """Return the public attribute names of a class; a FIDL member could have the same name."""
    annotated = (vars(each).get("__annotations__", {}) for each in cls.__mro__)
    return {each for each in (*dir(cls), *(k for a in annotated for k in a)) if each[0] != "_"}


@pytest.mark.parametrize(
    ("cls", "taken"),
    [(Struct, OF_RECORDS), (Table, OF_RECORDS), (Union, OF_UNIONS)],
)
def test_attribute_names_of_records_are_reserved(cls: type, taken: frozenset[str]) -> None:
    assert public(cls) == taken


@pytest.mark.parametrize("cls", [Enum, Bits])
def test_names_of_int_attributes_in_all_python_versions_are_reserved(cls: type) -> None:
    assert public(cls) <= OF_NUMBERS
    assert OF_NUMBERS - public(cls) <= {"mro", "is_integer"}


def test_python_keywords_get_an_underscore() -> None:
    assert [python_name(each) for each in ("from", "None", "match", "TYPE")] == [
        "from_", "None_", "match", "TYPE"
    ]  # fmt: skip
    assert python_name("which", OF_UNIONS) == "which_"


def test_module_name_of_a_library_is_an_identifier() -> None:
    assert [module_name(each) for each in ("a.b", "class", "a.class")] == [
        "a_b", "class_", "a_class"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "_a", "a_", "1a", "a-b", "a.b", "é", "a\n", "a b"])
def test_name_pattern_does_not_match_invalid_names(name: str) -> None:
    assert NAME.fullmatch(name) is None


@pytest.mark.parametrize("name", ["", "a.", ".a", "a_b", "A", "a..b", "a/b", "../a", "a\n"])
def test_library_name_pattern_does_not_match_invalid_names(name: str) -> None:
    assert LIBRARY.fullmatch(name) is None
