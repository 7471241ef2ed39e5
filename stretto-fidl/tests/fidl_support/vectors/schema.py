"""The FIDL library that defines the types of the test vectors."""

from __future__ import annotations

from fidl_support.ir import library

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PRIMITIVES = ("bool", *INTEGERS, "float32", "float64")
SIZES = {name: int(name.lstrip("uintfloa")) // 8 for name in PRIMITIVES[1:]} | {"bool": 1}
HIGHEST = {name: (1 << (8 * SIZES[name] - (name[0] == "i"))) - 1 for name in INTEGERS}
LOWEST = {name: -HIGHEST[name] - 1 if name[0] == "i" else 0 for name in INTEGERS}

EVENT_BASIC = 0xC003  # The rights transfer, duplicate, wait and inspect.

STRUCTS = {
    "Empty": "",
    "EmptyInside": "before uint32, empty Empty, after uint32",
    "Pair": "a uint8, b uint16",
    "Box": "inner Empty?",
    "Chain": "next Chain?",
    "ChainText": "next ChainText?, text string?",
    "ChainBytes": "next ChainBytes?, data vector<uint8>?",
    "ChainEmptyTable": "next ChainEmptyTable?, t EmptyTable",
    "Nested": "head uint8, inner Pair, tail uint64",
    "Text": "text string",
    "Text4": "text string:4",
    "OptionalText": "text string?",
    "OptionalText4": "text string:4?",
    "TwoTexts": "one string, two string",
    "Optional": "v vector<uint32>?",
    "Bounded": "v vector<uint32>:2",
    "Texts": "v vector<string>",
    "Vectors": "v vector<vector<uint8>>",
    "Pairs": "v vector<Pair>",
    "Empties": "v vector<Empty>",
    "Boxes": "v vector<Empty?>",
    "Chains": "v vector<Chain>",
    "Bytes3": "a array<uint8,3>",
    "Numbers3": "a array<uint32,3>",
    "Bools3": "a array<bool,3>",
    "Texts2": "a array<string,2>",
    "Pairs2": "a array<Pair,2>",
    "Grid": "a array<array<uint16,2>,2>",
    "TextArray": "text string_array<8>",
    "OneTable": "t Table",
    "OneEmptyTable": "t EmptyTable",
    "OneResourceTable": "t ResourceTable",
    "TablePadded": "t PaddedTable",
    "TableChain": "t ChainTable",
    "OneUnion": "u Union",
    "OptionalUnion": "u Union?",
    "UnionThenByte": "u Union, x uint8",
    "OneStrictUnion": "u StrictUnion",
    "OptionalStrictUnion": "u StrictUnion?",
    "OneResourceUnion": "u ResourceUnion",
    "OneEmptyUnion": "u EmptyUnion",
    "OneHandle": "h handle",
    "OptionalHandle": "h handle?",
    "OneEvent": "h handle:event",
    "BasicEvent": "h handle:event,0xc003",
    "OneVmo": "h handle:vmo",
    "Handles": "v vector<handle>",
    "OptionalHandles": "v vector<handle?>",
    "HandleArray": "a array<handle,3>",
    "HandleOrder": "v vector<handle:event>, h handle:vmo",
    "HandleBox": "b OneHandle?",
    "TextThenHandle": "before handle, text string:2, after handle",
    "Client": "c client:Talk",
    "OptionalClient": "c client:Talk?",
    "Server": "s server:Talk",
    "OptionalServer": "s server:Talk?",
    "Framework": "e framework_error",
    **{f"One_{name}": f"x {name}" for name in PRIMITIVES},
    **{f"Vector_{name}": f"v vector<{name}>" for name in PRIMITIVES},
    **{f"Two_{one}_{two}": f"a {one}, b {two}" for one in INTEGERS[4:] for two in INTEGERS[4:]},
    **{
        f"{kind}{what}_{name}": f"x {strictness}{what}_{name}"
        for kind, strictness in (("S", "Strict"), ("F", "Flexible"))
        for what in ("Enum", "Bits")
        for name in INTEGERS
        if what == "Enum" or name[0] == "u"
    },
    "Enums": "v vector<StrictEnum_uint16>",
    "Names": "class uint8, self uint8",
}
ENUM = {"ONE": 1, "TWO": 2, "LAST": 100}
LIBRARY = library(
    "vectors",
    structs=STRUCTS,
    tables={
        "Table": "1: a uint8, 2: b uint64, 3: c string, 5: e Pair",
        "EmptyTable": "",
        "ResourceTable": "1: a uint8, 2: h handle",
        "PaddedTable": "1: p Pair, 2: b bool, 3: e StrictEnum_uint16",
        "ChainTable": "1: c Chain, 2: t ChainTable",
    },
    unions={
        "Union": "1: a uint8, 2: b uint64, 3: c string, 4: p Pair, 6: u Union, 7: v vector<Union>",
        "StrictUnion": "1: a uint8, 2: b uint64",
        "ResourceUnion": "1: a uint8, 2: h handle:event, 3: v vector<handle>",
        "EmptyUnion": "",
    },
    enums={
        f"{strictness.capitalize()}Enum_{name}": (strictness, name, ENUM)
        for strictness in ("strict", "flexible")
        for name in INTEGERS
    },
    bits={
        f"{strictness.capitalize()}Bits_{name}": (
            strictness,
            name,
            {"A": 1, "B": 2, "TOP": 1 << (8 * SIZES[name] - 1)},
        )
        for strictness in ("strict", "flexible")
        for name in INTEGERS[4:]
    },
    protocols={"Talk": []},
)
