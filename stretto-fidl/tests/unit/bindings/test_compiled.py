"""The bindings read the IR that the compiler writes."""

from __future__ import annotations

import pytest

from stretto_fidl import codec
from stretto_fidl.bindings import Event, Handle, load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.codec.handle import CHANNEL, EVENT
from stretto_fidl.codec.layout import layout
from stretto_fidl.compiler import compile_sources
from stretto_fidl.ordinals import ordinal_of

BASE = """\
library base;

type Point = struct { x int32; y int32; };
type Color = strict enum : uint8 { RED = 1; BLUE = 2; };

open protocol Parent {
    flexible Move(struct { by Point; });
};
"""
API = """\
library api;

using base;
using zx;

alias Name = string:8;

/// Something to draw.
type Shape = flexible resource union {
    1: point base.Point;
    2: name Name;
    3: ready zx.Handle:<EVENT, zx.Rights.TRANSFER>;
};

type Mixed = resource struct {
    a uint8;
    b vector<Shape>:4;
    c array<uint16, 3>;
    d box<base.Point>;
    @sensitive e string:optional;
    f Options;
    g client_end:<Draw, optional>;
};

type Options = table {
    1: level int8;
    3: color base.Color;
};

@allow_deprecated_struct_defaults
type Defaults = struct { n uint8 = 5; on bool = true; name string = "x"; x int8; };

type Reason = flexible enum : int32 { BUSY = -1; };

const FAVOURITE base.Color = base.Color.BLUE;

@discoverable
open protocol Draw {
    compose base.Parent;
    @trace("draw")
    Add(resource struct { shape Shape; }) -> (struct { count uint32; }) error Reason;
    strict Clear();
    -> OnFull(table { 1: limit uint32; });
};
"""


@pytest.fixture(scope="module")
def irs():
    base = compile_sources({"base.fidl": BASE})
    return base, compile_sources({"api.fidl": API}, dependencies={"base.fidl": BASE})


@pytest.fixture(scope="module")
def names(irs):
    base, api = irs
    base = load(base)
    return base, load(api, [base])


def test_values_of_compiled_types_are_equal_after_encoding_and_decoding(names) -> None:
    base, api = names
    with Event.create() as event:
        value = api.Mixed(
            a=1,
            b=[api.Shape(name="x"), api.Shape(point=base.Point(x=1, y=2)), api.Shape(ready=event)],
            c=[1, 2, 3],
            d=base.Point(x=3, y=4),
            f=api.Options(color=base.Color.BLUE),
        )
        data, dispositions = codec.encode(value)
        assert [each.object_type for each in dispositions] == [EVENT]
        assert codec.decode(api.Mixed, data, [each.transfer() for each in dispositions]) == value
        assert event.rights == 2


def test_sizes_of_the_bindings_equal_the_type_shapes_in_the_ir(irs, names) -> None:
    _, api = names
    assert len(irs[1]["struct_declarations"]) >= 4
    for declaration in irs[1]["struct_declarations"]:
        type_ = getattr(api, declaration["name"].rpartition("/")[2]).TYPE
        shape, expected = layout(type_), declaration["type_shape_v2"]
        assert shape.size == expected["inline_size"]
        assert shape.alignment == expected["alignment"]
        assert bool(shape.padding) <= expected["has_padding"]
        offsets = [member["field_shape_v2"]["offset"] for member in declaration["members"]]
        assert list(shape.offsets) == offsets


def test_members_omitted_in_the_constructor_have_their_defaults(names) -> None:
    value = names[1].Defaults(x=1)
    assert (value.n, value.on, value.name, value.x) == (5, True, "x", 1)
    assert names[1].Defaults(x=1, n=6) != value


def test_constant_of_another_librarys_enum_is_a_member_of_that_enum(names) -> None:
    base, api = names
    assert api.FAVOURITE == base.Color.BLUE
    assert isinstance(api.FAVOURITE, base.Color)


def test_methods_have_the_ordinals_attributes_and_errors_of_their_definition(names) -> None:
    _, api = names
    methods = api.Draw.BY_NAME
    assert set(methods) == {"Add", "Clear", "OnFull", "Move"}
    add = methods["Add"]
    assert add.ordinal == ordinal_of("api/Draw.Add")
    assert add.attributes == {"trace": "draw"}
    assert add.error is api.Reason
    reply = add.response(response=add.success(count=3))
    data, _ = codec.encode(reply)
    assert codec.decode(add.response, data) == reply
    assert add.response(err=api.Reason.BUSY).which == "err"
    assert add.response(framework_err=-2).ordinal == 3
    assert methods["OnFull"].response(limit=3).limit == 3


def test_composed_methods_use_the_classes_of_the_library_that_defines_them(names) -> None:
    base, api = names
    move = api.Draw.BY_NAME["Move"]
    assert move.composed
    assert move.ordinal == ordinal_of("base/Parent.Move")
    assert move.request is base.Parent.BY_NAME["Move"].request


def test_library_loads_without_the_libraries_that_it_uses(irs) -> None:
    """Composed methods keep their types; constants of another library's enum are ints."""
    api = load(irs[1])
    assert api.FAVOURITE == 2
    move = api.Draw.BY_NAME["Move"]
    assert move.request.TYPE.name == "base/ParentMoveRequest"


def test_type_of_a_channel_end_has_its_role_and_protocol(names) -> None:
    type_ = names[1].Mixed.TYPE.members[6].type
    assert (type_.role, type_.protocol, type_.optional) == ("client", "api/Draw", True)
    assert type_.object_type == CHANNEL


def test_generated_module_imports_only_the_libraries_that_it_mentions(irs) -> None:
    text = generate(irs[1])["api.py"]
    assert "import base as _lib_base" in text
    assert "zx" not in text


def test_plain_int_in_place_of_a_handle_is_refused(names) -> None:
    with pytest.raises(codec.WireError, match="ready: a handle is expected, not a int"):
        names[1].Shape(ready=5)
    assert issubclass(Event, Handle)
