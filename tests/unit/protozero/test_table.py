from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from stretto.protos import config
from stretto.protozero.message import Message
from stretto.protozero.table import Table
from tests.support.generated import load, module_of

SAMPLES = Path(__file__).parent


@pytest.fixture
def sample() -> Any:
    return load(module_of(SAMPLES / "sample.proto", "stretto_sample")[1])


class TestMessageModule:
    def test_classes_are_created_on_first_use(self, sample: Any) -> None:
        assert "Everything" not in vars(sample)
        made = sample.Everything
        assert vars(sample)["Everything"] is made
        assert sample.Everything is made

    def test_dir_lists_top_level_types_and_constants(self, sample: Any) -> None:
        assert sorted(dir(sample)) == ["Color", "Empty", "Everything", "SAMPLER_METHODS"]

    def test_unknown_names_raise_attribute_error(self, sample: Any) -> None:
        for name in ("Nothing", "Everything.Inner"):
            with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
                getattr(sample, name)

    def test_classes_have_their_module_and_qualified_name(self, sample: Any) -> None:
        inner = sample.Everything.Inner
        assert (inner.__module__, inner.__qualname__) == ("stretto_sample", "Everything.Inner")
        assert inner.__name__ == "Inner"
        assert sample.Everything.Shape.__qualname__ == "Everything.Shape"
        assert inner.Writer.__qualname__ == "Everything.Inner.Writer"

    def test_service_methods_have_numbers(self, sample: Any) -> None:
        assert sample.SAMPLER_METHODS == {"First": 1, "Second": 2}

    def test_message_field_contains_the_nested_class(self, sample: Any) -> None:
        message = sample.Everything(inner=sample.Everything.Inner(value=1))
        decoded = sample.Everything.decode(message.encode())
        assert type(decoded.inner) is sample.Everything.Inner
        assert isinstance(decoded.inner, Message)

    def test_reserved_names_get_an_underscore(self, sample: Any) -> None:
        message = sample.Everything(from_=1, encode_=True, bytes=b"x", str="s", list=[1], self_=2)
        assert sample.Everything.decode(message.encode()) == message
        assert sample.Everything.LAYOUT.by_name["from_"].proto_name == "from"

    def test_writer_methods_use_the_names_of_the_schema(self, sample: Any) -> None:
        writer = sample.Everything.Writer()
        writer.set_from(1)
        writer.set_encode(True)
        writer.add_list(3)
        expected = sample.Everything(from_=1, encode_=True, list=[3])
        assert sample.Everything.decode(writer.finish()) == expected

    def test_defaults_of_the_schema_are_used(self, sample: Any) -> None:
        message = sample.Everything()
        assert message.a_int32 == -5
        assert message.a_string == 'two words, "quoted" \\ é'
        assert message.color == sample.Color.NEGATIVE == -1
        assert message.shape == sample.Everything.SQUARE - 15 == sample.Everything.ROUND


class TestTypesOfOtherModules:
    def test_type_of_another_module_is_resolved(self) -> None:
        table = Table(__name__, {"Mine": "config 1 message:stretto.protos.config/TraceConfig"}, {})
        mine = table.find("Mine")(config=config.TraceConfig(duration_ms=1))
        assert table.find("Mine").decode(mine.encode()).config.duration_ms == 1

    def test_module_of_a_type_is_imported_on_first_use(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(sys.modules, "stretto.protos.ipc", raising=False)
        table = Table(
            __name__, {"Mine": "frame 1 message:stretto.protos.ipc/IPCFrame.BindService"}, {}
        )
        mine = table.find("Mine")
        assert mine().frame is None
        assert "stretto.protos.ipc" not in sys.modules
        assert type(mine.decode(b"\x0a\x00").frame).__qualname__ == "IPCFrame.BindService"


def classes_of_four_threads() -> list[type]:
    table = Table(__name__, {"Wide": "\n".join(f"f{n} {n} int32" for n in range(1, 200))}, {})
    start = threading.Barrier(4)
    found = []

    def look_up() -> None:
        start.wait()
        found.append(table.find("Wide"))

    threads = [threading.Thread(target=look_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_concurrent_first_use_creates_one_class() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            found = classes_of_four_threads()
            assert len(found) == 4
            assert len(set(found)) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_field_is_made_when_it_is_first_used() -> None:
    table = Table(__name__, {"Mine": "first 11 int32\nlist 1 string repeated\nlast 111 bool"}, {})
    layout = table.find("Mine").LAYOUT
    assert layout.names == ["first", "list", "last"]
    assert not layout.made
    found = layout.numbered(1)
    assert (found.path, found.repeated) == ("Mine.list", True)
    assert layout.find("list") is found
    assert list(layout.made) == ["list"]
    assert layout.find("las") is layout.find("last 111") is None
    assert layout.numbered(2) is layout.numbered(0) is None
    assert layout.numbered(111) is layout.find("last")
    assert list(layout.by_name) == layout.names
    assert list(layout.by_number) == [11, 1, 111]


def test_fields_are_encoded_in_the_order_of_their_declaration() -> None:
    table = Table(__name__, {"Mine": "first 11 int32\nlast 1 int32"}, {})
    mine = table.find("Mine")(last=1, first=2)
    assert mine.encode() == b"\x58\x02\x08\x01"


def test_fields_that_have_been_decoded_are_decoded_natively(sample: Any) -> None:
    inner = sample.Everything.Inner
    encoded = inner(children=[inner(value=-3)], sibling=inner(value=5)).encode()
    assert not inner.LAYOUT.read_plan
    for _ in range(2):
        message = inner.decode(encoded)
        assert (message.children[0].value, message.sibling.value) == (-3, 5)
        assert {item[0] for item in inner.LAYOUT.read_plan.values()} == set(inner.LAYOUT.by_name)
