"""Evaluates constants: literals, names, and values joined by `|`."""

from __future__ import annotations

import math
import re
import struct

from stretto_fidl.compiler import types
from stretto_fidl.compiler.declarations import ConstDecl, LayoutDecl
from stretto_fidl.compiler.names import with_article
from stretto_fidl.compiler.syntax_tree import Identifier, Literal, Or
from stretto_fidl.compiler.types import Type
from stretto_fidl.compiler.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.requirements import Requirements
    from stretto_fidl.compiler.syntax_tree import Constant

_INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")
_FLOAT = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?")
_MAX_DIGITS = 400
_FLOAT32_MAX = float.fromhex("0x1.fffffep127")
_INTEGERS = {name for name in types.SIZES if "int" in name}


class Evaluator:
    """Evaluates the constants of one library.

    Args:
        required: Compiles the declarations to which a constant refers.
    """

    def __init__(self, required: Requirements) -> None:
        self._required = required

    def evaluate(self, constant: Constant, type_: Type) -> Value:
        """Return the value of a constant of an expected type.

        Raises:
            CompileError: The constant has another type, or is out of the type's range.
        """
        with self._required.nested(constant.span):
            if isinstance(constant, Literal):
                return self._literal(constant, type_)
            if isinstance(constant, Or):
                return self._or(constant, type_)
            return self._identifier(constant, type_)

    def evaluate_untyped(self, constant: Constant) -> Value:
        """Return the value of an attribute's argument.

        The argument is a string, a bool, or a constant of type string or bool.

        Raises:
            CompileError: The argument is something else.
        """
        if isinstance(constant, Literal) and constant.kind == "numeric":
            raise constant.span.error(
                "arguments of attributes of your own are strings or bools, no numbers: quote it"
            )
        if isinstance(constant, Literal):
            kind = Type(types.STRING) if constant.kind == "string" else types.primitive("bool")
            return self.evaluate(constant, kind)
        if isinstance(constant, Or):
            raise constant.span.error("an attribute's argument can't be combined by `|`")
        decl = self._required.scope.declaration(constant.reference)
        if isinstance(decl, ConstDecl):
            self._required.require(decl, constant.span)
            if decl.value is not None and decl.value.type in ("string", "bool"):
                value = decl.value
                return Value(constant, value.value, value.type, decl.full_name)
        raise constant.span.error(f"`{constant.reference}` isn't a constant of type string or bool")

    def _literal(self, literal: Literal, type_: Type) -> Value:
        wanted = type_.subtype if type_.kind == types.PRIMITIVE else type_.kind
        if wanted in (types.STRING, types.STRING_ARRAY) and literal.kind == "string":
            self._check_length(literal, str(literal.value), type_)
            return Value(literal, str(literal.value), "string")
        if wanted == "bool" and literal.kind == "bool":
            return Value(literal, bool(literal.value), "bool")
        if literal.kind == "numeric" and type_.kind == types.PRIMITIVE and wanted != "bool":
            return Value(literal, _number(literal, wanted), wanted)
        is_bits = type_.decl is not None and type_.decl.kind == "bits"
        if is_bits and literal.kind == "numeric" and literal.text == "0":
            return Value(literal, 0, self._integer_type(type_) or "uint32")
        raise literal.span.error(f"{literal.text} isn't a value of type `{type_.text}`")

    def _check_length(self, constant: Constant, text: str, type_: Type) -> None:
        length = len(text.encode())
        if type_.size is not None and length > type_.size:
            raise constant.span.error(
                f"the string is {length} bytes long, but its type allows {type_.size}"
            )

    def _or(self, constant: Or, type_: Type) -> Value:
        name = self._integer_type(type_)
        is_enum = type_.decl is not None and type_.decl.kind == "enum"
        if name is None or is_enum:
            raise constant.span.error(f"`|` works on integers and bits, not on `{type_.text}`")
        result = 0
        for operand in constant.operands:
            result |= self.evaluate(operand, type_).integer
        return Value(constant, result, name)

    def _integer_type(self, type_: Type) -> str | None:
        """Return the name of the integer type that stores values of a type.

        Return None unless the type is an integer, an enum or bits.
        """
        if type_.kind == types.PRIMITIVE and type_.subtype in _INTEGERS:
            return type_.subtype
        decl = type_.decl
        if isinstance(decl, LayoutDecl) and decl.kind in ("enum", "bits"):
            return self._required.underlying(decl)
        return None

    def _identifier(self, constant: Identifier, type_: Type) -> Value:
        reference = constant.reference
        decl = self._required.scope.declaration(reference)
        if isinstance(decl, ConstDecl):
            return self._named(constant, decl, type_)
        if decl is not None:
            raise constant.span.error(f"`{reference}` is {with_article(decl.kind)}, no constant")
        found = self._required.scope.member(reference)
        if found is not None:
            return self._member(constant, *found, type_)
        raise self._required.unknown(reference)

    def _named(self, constant: Identifier, decl: ConstDecl, type_: Type) -> Value:
        self._required.require(decl, constant.span)
        assert decl.value is not None
        assert decl.type is not None
        source = decl.type.type
        if source.kind == types.IDENTIFIER:
            assert isinstance(source.decl, LayoutDecl)
            self._check_owner(constant, source.decl, type_)
        return self._converted(constant, decl.value, type_, decl.full_name)

    def _member(self, constant: Identifier, decl: LayoutDecl, member, type_: Type) -> Value:  # type: ignore[no-untyped-def]
        self._required.require(decl, constant.span)
        assert member.value is not None
        self._check_owner(constant, decl, type_)
        name = f"{decl.full_name}.{member.name}"
        return self._converted(constant, member.value, type_, name)

    def _check_owner(self, constant: Identifier, owner: LayoutDecl, type_: Type) -> None:
        """Check that a member of an enum or bits is used only as a value of its own type."""
        if type_.kind == types.IDENTIFIER and type_.decl is not owner:
            raise constant.span.error(
                f"`{constant.reference}` is of type `{owner.full_name}`, not `{type_.text}`"
            )

    def _converted(self, constant: Identifier, value: Value, type_: Type, name: str) -> Value:
        if type_.kind in (types.STRING, types.STRING_ARRAY) and value.type == "string":
            self._check_length(constant, str(value.value), type_)
            return Value(constant, value.value, "string", name)
        if type_.kind == types.IDENTIFIER and value.type in _INTEGERS:
            return Value(constant, value.value, value.type, name)
        if type_.kind == types.PRIMITIVE:
            wanted = type_.subtype
            if value.type == wanted == "bool":
                return Value(constant, value.value, "bool", name)
            if value.type in _INTEGERS and wanted in _INTEGERS:
                _check_range(constant, value.integer, wanted)
                return Value(constant, value.value, wanted, name)
            if "float" in value.type and "float" in wanted:
                return Value(constant, _float(constant, float(value.value), wanted), wanted, name)
        raise constant.span.error(
            f"`{constant.reference}` is of type `{value.type}`, not `{type_.text}`"
        )


def _number(literal: Literal, type_: str) -> int | float:
    text = literal.text
    if len(text) > _MAX_DIGITS:
        raise literal.span.error(f"a number of more than {_MAX_DIGITS} characters fits no type")
    if "float" in type_:
        if _FLOAT.fullmatch(text):
            return _float(literal, float(text), type_)
        if not _INTEGER.fullmatch(text):
            raise literal.span.error(f"{text} isn't a number")
        return _float(literal, float(_integer(text)), type_)
    if not _INTEGER.fullmatch(text):
        raise literal.span.error(f"{text} isn't an integer, but the type is `{type_}`")
    value = _integer(text)
    _check_range(literal, value, type_)
    return value


def _integer(text: str) -> int:
    digits = text.removeprefix("-").lower()
    base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
    value = int(digits[2:] if base != 10 else digits, base)
    return -value if text.startswith("-") else value


def _check_range(constant: Constant, value: int, type_: str) -> None:
    low, high = integer_range(type_)
    if not low <= value <= high:
        raise constant.span.error(f"{value} doesn't fit in `{type_}`: {low} to {high}")


def integer_range(type_: str) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    bits = types.SIZES[type_] * 8
    if type_.startswith("u"):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _float(constant: Constant, value: float, type_: str) -> float:
    if math.isinf(value) or (type_ == "float32" and abs(value) > _FLOAT32_MAX):
        raise constant.span.error(f"this number doesn't fit in `{type_}`")
    if type_ == "float32":
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    return value
