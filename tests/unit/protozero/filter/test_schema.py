"""Filters made from schemas, with the cases of Perfetto's own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto import _native
from stretto.base.errors import ConfigError
from stretto.protozero.filter.bytecode import V1, V2, V54
from stretto.protozero.filter.describe import describe_allowed, describe_schema
from stretto.protozero.filter.load import load_filter
from stretto.protozero.filter.schema import (
    DENY,
    PASSTHROUGH,
    Annotation,
    FilterString,
    SchemaFilter,
)
from tests.support.generated import load, module_of

SAMPLE = Path(__file__).parent / "filter_sample.proto"
Root: Any = load(module_of(SAMPLE, "stretto_filter_sample")[1]).Root


def compiled(
    annotations: dict[str, Annotation] | None = None, version: int = V54
) -> _native.MessageFilter:
    return load_filter(*SchemaFilter(Root, annotations).generate(version))


def message_at(loaded: _native.MessageFilter, *path: int) -> int:
    number = 0
    for field in path:
        rule = loaded.query(number, field)
        assert rule is not None
        assert rule[0] == "nested"
        number = rule[1]
    return number


class TestSchemaToBytecode:
    def test_primitive_fields_are_simple(self) -> None:
        loaded = compiled()
        for field in (1, 2, 5, 13, 14, 71, 200):
            assert loaded.query(0, field) == ("simple", 0)
        for field in (0, 3, 4, 6, 12, 15, 70, 72, 199, 201):
            assert loaded.query(0, field) is None

    def test_message_fields_are_nested(self) -> None:
        loaded = compiled()
        child = message_at(loaded, 20)
        assert loaded.query(child, 3) == ("simple", 0)
        assert loaded.query(child, 4) == ("nested", child)
        assert loaded.query(child, 1) is None

    def test_maps_are_nested_messages_with_key_and_value(self) -> None:
        loaded = compiled()
        numbers, children = message_at(loaded, 30), message_at(loaded, 31)
        assert loaded.query(numbers, 1) == loaded.query(numbers, 2) == ("simple", 0)
        assert loaded.query(children, 1) == ("simple", 0)
        assert message_at(loaded, 31, 2) == message_at(loaded, 20)
        full = Root(numbers={"a": 1}, children={3: Root.Child(f64=[1])})
        assert Root.decode(loaded.filter(full.encode()) or b"") == full

    def test_dedupe_merges_equal_messages(self) -> None:
        schema = SchemaFilter(Root)
        before = len(schema.messages)
        larger = schema.generate()[0]
        schema.dedupe()
        assert len(schema.messages) == before - 1
        code = schema.generate()[0]
        assert len(code) < len(larger)
        loaded = load_filter(code)
        assert message_at(loaded, 21) == message_at(loaded, 22)
        assert message_at(loaded, 21) != message_at(loaded, 23)
        assert loaded.query(message_at(loaded, 23), 1) == ("simple", 0)

    def test_dedupe_keeps_messages_with_different_string_filters(self) -> None:
        schema = SchemaFilter(Root, {"Root.Leaf2.a": FilterString()})
        schema.dedupe()
        loaded = load_filter(schema.generate()[0])
        assert loaded.query(message_at(loaded, 21), 3) == ("simple", 0)
        assert loaded.query(message_at(loaded, 22), 3) == ("string", 0)

    def test_dedupe_keeps_the_root_message(self) -> None:
        schema = SchemaFilter(Root.Leaf1)
        schema.dedupe()
        assert [message.name for message in schema.messages] == ["Root.Leaf1"]

    def test_passthrough_fields_are_copied_whole(self) -> None:
        loaded = compiled({"Root.child": PASSTHROUGH, "Root.numbers": PASSTHROUGH})
        assert loaded.query(0, 20) == loaded.query(0, 30) == ("simple", 0)
        unknown = b"\xa2\x01\x04\x98\x06\x01\xff"
        assert loaded.filter(unknown) == unknown

    def test_denied_fields_are_missing_from_the_filter(self) -> None:
        loaded = compiled({"Root.child": DENY, "Root.i32": DENY, "Root.numbers": DENY})
        assert [loaded.query(0, field) for field in (1, 20, 30)] == [None] * 3
        assert loaded.query(0, 2) == ("simple", 0)

    def test_annotations_use_the_names_of_the_schema(self) -> None:
        assert compiled({"Root.from": DENY}).query(0, 200) is None


class TestStringFields:
    def test_filter_string_field_without_semantic_type_is_a_plain_string(self) -> None:
        loaded = compiled({"Root.text": FilterString()})
        assert loaded.query(0, 13) == ("string", 0)
        assert loaded.query(0, 14) == loaded.query(0, 71) == ("simple", 0)

    def test_filter_string_field_has_its_semantic_type(self) -> None:
        loaded = compiled({"Root.text": FilterString(2), "Root.other_text": FilterString(3)})
        assert loaded.query(0, 13) == ("string", 2)
        assert loaded.query(0, 71) == ("string", 3)

    def test_bytecode_v2_has_semantic_types_only_in_the_overlay(self) -> None:
        schema = SchemaFilter(Root, {"Root.text": FilterString(2)})
        code, overlay = schema.generate(V2)
        assert load_filter(code).query(0, 13) is None
        assert load_filter(code, overlay).query(0, 13) == ("string", 2)

    def test_string_field_allowed_in_bytecode_v2_is_a_plain_string_without_the_overlay(
        self,
    ) -> None:
        schema = SchemaFilter(Root, {"Root.text": FilterString(2, allow_in_v2=True)})
        code, overlay = schema.generate(V2)
        assert load_filter(code).query(0, 13) == ("string", 0)
        assert load_filter(code, overlay).query(0, 13) == ("string", 2)

    def test_bytecode_v1_has_string_fields_only_if_allowed(self) -> None:
        annotations: dict[str, Annotation] = {
            "Root.text": FilterString(),
            "Root.other_text": FilterString(allow_in_v1=True),
        }
        loaded = compiled(annotations, V1)
        assert loaded.query(0, 13) is None
        assert loaded.query(0, 71) == ("simple", 0)

    @pytest.mark.parametrize(
        ("annotations", "complaint"),
        [
            ({"Root.i32": FilterString()}, "Root.i32 is no string, but int32"),
            ({"Root.blob": FilterString(1)}, "Root.blob is no string, but bytes"),
            ({"Root.child": FilterString()}, "Root.child is no string"),
            ({"Root.i32": PASSTHROUGH}, "Root.i32 is no message"),
            ({"Root.nothing": DENY}, "Root reaches no Root.nothing"),
            ({"Root.text": FilterString}, "Root.text has the annotation <class"),
            ({"Root.text": "DENY"}, "Root.text has the annotation 'DENY': use DENY"),
            ({"Child.f64": DENY}, "Root reaches no Child.f64"),
        ],
    )
    def test_invalid_annotations_are_refused(self, annotations: Any, complaint: str) -> None:
        with pytest.raises(ConfigError, match=complaint):
            SchemaFilter(Root, annotations)


class TestSchemaDescriptions:
    def test_schema_description_lists_fields_and_annotations(self) -> None:
        schema = SchemaFilter(
            Root, {"Root.text": FilterString(2), "Root.leaf1": PASSTHROUGH, "Root.leaf2": DENY}
        )
        lines = [line.split(maxsplit=4) for line in describe_schema(schema)]
        assert lines[:2] == [["Root", "1", "int32", "i32"], ["Root", "2", "fixed64", "f64"]]
        assert ["Root", "13", "string", "text", "# FILTER STRING, semantic type 2"] in lines
        assert ["Root", "21", "Root.Leaf1", "leaf1", "# PASSTHROUGH"] in lines
        assert ["Root.Child", "4", "Root.Child", "recurse", "Root.Child"] in lines
        assert not [line for line in lines if line[3] == "leaf2"]

    def test_bytecode_description_lists_allowed_fields(self) -> None:
        schema = SchemaFilter(Root)
        loaded = compiled({"Root.text": FilterString(2), "Root.leaf1": PASSTHROUGH})
        lines = [line.split(maxsplit=4) for line in describe_allowed(schema, loaded)]
        assert ["Root", "13", "string", "text", "# FILTER STRING, semantic type 2"] in lines
        assert ["Root", "21", "Root.Leaf1", "leaf1", "# PASSTHROUGH"] in lines
        assert ["Root", "20", "Root.Child", "child", "Root.Child"] in lines
        assert not [line for line in lines if line[0] == "Root.Leaf1"]
        assert lines.count(["Root.Child", "3", "fixed64", "f64"]) == 1
        denied = compiled({"Root.child": DENY, "Root.children": DENY})
        assert not [line for line in describe_allowed(schema, denied) if "Child" in line]
