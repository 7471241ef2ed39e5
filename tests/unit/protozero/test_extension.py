from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.protozero import wire
from stretto.protozero.generator import proto_parser
from stretto.protozero.generator.compiler import Options, compile_files
from stretto.protozero.json_format import format_json, parse_json
from stretto.protozero.table import Table
from stretto.protozero.text_format import TextFormatError, format_text, parse_text
from tests.support.generated import load_files, load_text

SAMPLES = Path(__file__).parent
_fresh = count()


@pytest.fixture
def modules() -> tuple[Any, Any]:
    """Return newly loaded modules `extended` and `extending`, not shared with other tests."""
    extended, extending = load_files(SAMPLES, ["extending.proto"], f"fresh{next(_fresh)}")
    return extended, extending


class TestExtensionValues:
    def test_extension_is_a_key_of_the_message(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        event = extended.Event(id=1)
        assert ext.speed not in event
        assert event[ext.speed] == 0
        assert event[ext.detail] is None
        event[ext.speed] = 5
        event[ext.detail] = ext.Detail(x=2)
        event[ext.tags].append("a")
        event[ext.numbers] = (1, 2)
        assert ext.speed in event
        assert event.encode() == bytes.fromhex("0801 a00605 aa060161 b206020802 ba06020102")
        assert extended.Event.decode(event.encode()) == event
        del event[ext.speed]
        assert ext.speed not in event

    def test_invalid_extension_values_are_refused(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        event = extended.Event()
        with pytest.raises(ConfigError, match=r"Event\.\[stretto\.extending\.speed\]: expected"):
            event[ext.speed] = "fast"
        with pytest.raises(ConfigError, match="expected Detail"):
            event[ext.detail] = extended.Event()
        with pytest.raises(ConfigError, match=r"expected Event"):
            event[ext.Detail.inner] = ext.Detail()

    def test_extension_declared_in_a_message_is_an_attribute_of_the_message(
        self, modules: tuple[Any, Any]
    ) -> None:
        extended, ext = modules
        event = extended.Event()
        event[ext.Detail.inner] = extended.Event(id=3)
        assert event.encode() == bytes.fromhex("f206020803")
        assert ext.Detail.inner.name == "stretto.extending.Detail.inner"
        assert "Detail.inner of fresh" in repr(ext.Detail.inner)
        assert "inner" not in dir(ext)
        assert "speed" in dir(ext)

    def test_extension_of_another_message_is_refused(self, modules: tuple[Any, Any]) -> None:
        _, ext = modules
        for use in (
            lambda: ext.Detail()[ext.speed],
            lambda: ext.speed in ext.Detail(),
            lambda: ext.Detail().__setitem__(ext.speed, 1),
        ):
            with pytest.raises(ConfigError, match=r"extends .*/Event, not Detail"):
                use()

    def test_key_that_is_no_extension_is_refused(self, modules: tuple[Any, Any]) -> None:
        extended, _ = modules
        for use in (
            lambda: extended.Event()["id"],
            lambda: "id" in extended.Event(),
            lambda: list(extended.Event()),
        ):
            with pytest.raises(ConfigError, match="takes an extension, not"):
                use()

    def test_extensions_are_merged_copied_and_shown(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        one = extended.Event(id=1)
        one[ext.detail] = ext.Detail(x=1)
        two = one.copy()
        two.merge(one)
        assert two == one
        assert two[ext.detail] is not one[ext.detail]
        assert "[stretto.extending.detail]=Detail(x=1)" in repr(one)

    def test_extension_is_an_unknown_field_before_its_module_is_imported(self) -> None:
        extended, load_extending = load_in_two_steps()
        data = bytes.fromhex("a00605")
        before = extended.Event.decode(data)
        assert before.unknown_fields == data
        ext = load_extending()
        assert before.encode() == data
        assert extended.Event.decode(data)[ext.speed] == 5

    def test_second_extension_with_the_same_number_is_refused(
        self, modules: tuple[Any, Any]
    ) -> None:
        extended, ext = modules
        assert extended.Event  # The class has to exist before the second extension is added.
        assert ext.speed
        name = extended.__name__
        with pytest.raises(ConfigError, match=r"other\.speed has the number 100 of Event\."):
            Table("other", {}, {}, {"speed": f"{name}/Event other.speed 100 int32"})


def load_in_two_steps() -> tuple[Any, Callable[[], Any]]:
    """Return module `extended` and a function that loads module `extending`."""
    prefix = f"fresh{next(_fresh)}"
    (extended,) = load_files(SAMPLES, ["extended.proto"], prefix)
    assert extended.Event

    def load() -> Any:
        files = proto_parser.parse_imported(["extending.proto"], [SAMPLES])
        texts = compile_files(files, ["extending.proto"], Options(prefix))
        return load_text(texts["extending_pbzero.py"], f"{prefix}.extending_pbzero")

    return extended, load


class TestPublicImport:
    def test_types_of_a_public_import_are_attributes_of_the_importer(
        self, modules: tuple[Any, Any]
    ) -> None:
        extended, ext = modules
        assert ext.Event is extended.Event
        assert "Event" in dir(ext)
        with pytest.raises(AttributeError):
            ext.Nothing  # noqa: B018


class TestExtensionsInWriters:
    def test_extensions_are_appended_by_a_writer(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        writer = extended.Event.Writer()
        writer.set_id(1)
        ext.speed.append(writer, 5)
        ext.tags.append(writer, "a")
        ext.tags.append(writer, "b")
        ext.numbers.append(writer, [1, 2])
        ext.detail.append(writer, ext.Detail(x=2))
        data = writer.finish()
        assert data.startswith(bytes.fromhex("0801 a00605 aa060161 aa060162 ba06020102"))
        event = extended.Event.decode(data)
        assert event[ext.tags] == ["a", "b"]
        assert event[ext.detail].x == 2

    def test_message_extension_is_opened_in_a_writer(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        writer = extended.Event.Writer()
        with ext.detail.open(writer) as detail:
            detail.set_x(7)
        assert writer.finish() == bytes.fromhex("b206020807")
        with pytest.raises(ConfigError, match="no message but int32: use append"):
            ext.speed.open(extended.Event.Writer())

    def test_writer_refuses_invalid_extension_values(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        writer = extended.Event.Writer()
        with pytest.raises(ConfigError, match="speed"):
            ext.speed.append(writer, "x")
        with pytest.raises(ConfigError, match="tags"):
            ext.tags.append(writer, 1)
        assert writer.finish() == b""


class TestExtensionsInDecoders:
    def test_decoder_reads_extensions_by_key(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        event = extended.Event()
        event[ext.detail] = ext.Detail(x=2)
        event[ext.numbers] = [1, -2]
        decoder = extended.Event.Decoder(event.encode())
        assert ext.detail in decoder
        assert ext.speed not in decoder
        assert decoder[ext.detail].x == 2
        assert decoder[ext.numbers] == [1, -2]
        assert decoder[ext.speed] == 0
        assert decoder[ext.tags] == []
        with pytest.raises(ConfigError, match="extends"):
            ext.Detail.Decoder(b"")[ext.tags]
        with pytest.raises(ConfigError, match="extends"):
            assert ext.tags in ext.Detail.Decoder(b"")


class TestExtensionsInTextAndJson:
    def test_extension_names_in_text_and_json_are_in_brackets(
        self, modules: tuple[Any, Any]
    ) -> None:
        extended, ext = modules
        event = extended.Event(id=1)
        event[ext.speed] = 5
        event[ext.details] = [ext.Detail(x=1), ext.Detail()]
        event[ext.level] = extended.Event.from_
        text = format_text(event)
        assert text.splitlines()[1:3] == [
            "[stretto.extending.speed]: 5",
            "[stretto.extending.details] {",
        ]
        assert "[stretto.extending.level]: from\n" in text
        assert parse_text(text, extended.Event) == event
        assert '"[stretto.extending.speed]": 5' in format_json(event)
        assert parse_json(format_json(event), extended.Event) == event

    @pytest.mark.parametrize(
        "text", ["[a.b]: 1", "[stretto.extending.speed]: 1 [stretto.extending.speed]: 2", "[]: 1"]
    )
    def test_unknown_or_repeated_extensions_in_text_are_refused(
        self, modules: tuple[Any, Any], text: str
    ) -> None:
        extended, ext = modules
        assert ext.speed
        with pytest.raises(TextFormatError):
            parse_text(text, extended.Event)

    def test_repeated_extension_may_be_listed_twice(self, modules: tuple[Any, Any]) -> None:
        extended, ext = modules
        text = '[stretto.extending.tags]: "a" [stretto.extending.tags]: "b"'
        assert parse_text(text, extended.Event)[ext.tags] == ["a", "b"]


class TestNamesAndDefaults:
    def test_names_reserved_by_python_get_an_underscore(self, modules: tuple[Any, Any]) -> None:
        extended, _ = modules
        event = extended.Event
        assert event.None_.VALUES == {"VALUES": 0, "from": 1, "name_of": 2}
        assert (event.VALUES_, event.from_, event.name_of_) == (0, 1, 2)
        assert event.None_.name_of(event.None_.from_) == "from"
        assert event.class_().level == 1
        assert event(bytes_left_=True).bytes_left_ is True
        assert extended.import_().encode() == b""

    def test_default_of_a_bytes_field_is_unescaped(self, modules: tuple[Any, Any]) -> None:
        assert modules[0].Event().blob == b'\0\xff"\na'

    def test_json_uses_json_name_and_accepts_the_schema_name(
        self, modules: tuple[Any, Any]
    ) -> None:
        event = modules[0].Event(other="x", a_fixed32=1)
        assert format_json(event) == '{"the OTHER": "x", "aFixed32": 1}'
        assert parse_json('{"the OTHER": "x", "a_fixed32": 1}', type(event)) == event


def test_field_numbers_without_extension_stay_unknown(modules: tuple[Any, Any]) -> None:
    extended, _ = modules
    data = wire.varint_field(199, 1)
    assert extended.Event.decode(data).unknown_fields == data
