"""Compiles protocols and services."""

from __future__ import annotations

from stretto_fidl.compiler import declarations, types
from stretto_fidl.compiler.declarations import LayoutDecl, MethodDecl, ProtocolDecl
from stretto_fidl.compiler.layouts import check_names
from stretto_fidl.compiler.names import canonical, with_article
from stretto_fidl.compiler.syntax_tree import Layout, Reference
from stretto_fidl.ordinals import ordinal_of, selector_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.compilation import Compilation
    from stretto_fidl.compiler.declarations import Composed, ServiceDecl
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import TypeConstructor
    from stretto_fidl.compiler.types import TypeUse

_OPENNESS = ("closed", "ajar", "open")
_PAYLOADS = ("struct", "table", "union")


def compile_protocol(compilation: Compilation, decl: ProtocolDecl) -> None:
    """Find and check a protocol's own methods and those of the protocols that it composes.

    Raises:
        CompileError: The protocol is wrong.
    """
    for composed in decl.composed:
        compilation.attributes(composed, "compose")
        _compose(compilation, decl, composed)
    for method in decl.methods:
        compilation.attributes(method, "method")
        _method(compilation, decl, method)
    decl.all_methods = [(method, False) for method in decl.methods]
    decl.all_methods += [(method, True) for method in _inherited(decl)]
    _check_clashes(decl)


def _inherited(decl: ProtocolDecl) -> list[MethodDecl]:
    """Return the methods that a protocol has by `compose`, each once."""
    found: dict[MethodDecl, None] = {}
    for composed in decl.composed:
        assert composed.protocol is not None
        found |= dict.fromkeys(method for method, _ in composed.protocol.all_methods)
    return list(found)


def _compose(compilation: Compilation, decl: ProtocolDecl, composed: Composed) -> None:
    reference = composed.reference.target
    assert isinstance(reference, Reference)
    other = compilation.scope.declaration(reference)
    if other is None:
        raise compilation.unknown(reference)
    if not isinstance(other, ProtocolDecl):
        raise composed.span.error(
            f"`{composed.name}` is {with_article(other.kind)}: only protocols are composed"
        )
    if any(other is earlier.protocol for earlier in decl.composed):
        raise composed.span.error(f"`{composed.name}` is composed twice: remove one")
    compilation.require(other, composed.span)
    if _OPENNESS.index(other.openness) > _OPENNESS.index(decl.openness):
        raise composed.span.error(
            f"a {decl.openness} protocol can't compose `{composed.name}`, which is {other.openness}"
        )
    composed.protocol = other


def _method(compilation: Compilation, decl: ProtocolDecl, method: MethodDecl) -> None:
    if not method.strict:
        _check_flexible(decl, method)
    selector = method.attribute("selector")
    method.selector = selector_of(
        decl.library.name, decl.name, method.name, selector.text() if selector else None
    )
    method.ordinal = ordinal_of(method.selector)
    if method.ordinal == 0:
        raise method.span.error("the ordinal would be 0: choose another name, or a `@selector`")
    resolve = compilation.types.resolve
    if method.error_syntax is not None:
        method.error = resolve(method.error_syntax)
        _check_error(method.error)
    if method.success_syntax is not None:
        method.success = resolve(method.success_syntax)
        _check_payload(compilation, method.success, method.success_syntax)
    if method.request_syntax is not None:
        method.request = resolve(method.request_syntax)
        _check_payload(compilation, method.request, method.request_syntax)
    if method.response_syntax is not None:
        method.response = resolve(method.response_syntax)
        if method.success is None:
            _check_payload(compilation, method.response, method.response_syntax)


def _check_flexible(decl: ProtocolDecl, method: MethodDecl) -> None:
    if decl.openness == "closed":
        raise method.span.error(
            f"a closed protocol can't have the flexible method `{method.name}`: "
            "write `strict`, or make the protocol open"
        )
    if decl.openness == "ajar" and method.kind == "twoway":
        raise method.span.error(
            f"an ajar protocol can't have the flexible two-way method `{method.name}`: "
            "write `strict`, or make the protocol open"
        )


def _check_payload(compilation: Compilation, use: TypeUse, syntax: TypeConstructor) -> None:
    decl = use.type.decl
    is_layout = use.type.kind == types.IDENTIFIER and isinstance(decl, LayoutDecl)
    if not is_layout or use.type.nullable or decl is None or decl.kind not in _PAYLOADS:
        raise use.span.error(
            f"`{use.type.text}` can't be sent as it is: a payload is a struct, table or union"
        )
    assert isinstance(decl, LayoutDecl)
    if decl.kind != "struct":
        return
    if not decl.members and not decl.is_empty_success and isinstance(syntax.target, Layout):
        raise use.span.error("an empty struct can't be sent: write `()`")
    if isinstance(syntax.target, Layout) or decl.library is compilation.library:
        for member in decl.members:
            if member.value_syntax is not None:
                raise use.span.error("a struct whose members have defaults can't be a payload")


def _check_error(use: TypeUse) -> None:
    decl = use.type.decl
    subtype = use.type.subtype
    if isinstance(decl, LayoutDecl) and decl.kind == "enum":
        syntax = decl.subtype_syntax
        subtype = syntax.span.text if syntax is not None else "uint32"
    if use.type.kind not in (types.PRIMITIVE, types.IDENTIFIER) or subtype not in (
        "int32",
        "uint32",
    ):
        raise use.span.error("an error is int32, uint32, or an enum of one of these")


def _check_clashes(decl: ProtocolDecl) -> None:
    names: dict[str, MethodDecl] = {}
    ordinals: dict[int, MethodDecl] = {}
    for method, is_composed in decl.all_methods:
        other = names.setdefault(canonical(method.name), method)
        if other is not method:
            raise _place(decl, method, is_composed).error(
                f"method `{method.name}` and `{other.name}` at {other.span} "
                "have the same or too similar names: rename one of them"
            )
        other = ordinals.setdefault(method.ordinal, method)
        if other is not method:
            raise _place(decl, method, is_composed).error(
                f"method `{method.name}` has the ordinal of `{other.name}` at {other.span}: "
                "give one of them a `@selector`"
            )


def _place(decl: ProtocolDecl, method: MethodDecl, is_composed: bool) -> Span:
    if not is_composed:
        return method.span
    for composed in decl.composed:
        if composed.protocol is not None and any(
            method is other for other, _ in composed.protocol.all_methods
        ):
            return composed.span
    return decl.span


def compile_service(compilation: Compilation, decl: ServiceDecl) -> None:
    """Resolve the members of a service.

    Raises:
        CompileError: A member isn't a client end, or has another transport than the other members.
    """
    check_names(decl.members, "member")
    first: declarations.Member | None = None
    for member in decl.members:
        compilation.attributes(member, "service member")
        assert member.type_syntax is not None
        member.type = compilation.types.resolve(member.type_syntax)
        type_ = member.type.type
        if type_.kind != types.ENDPOINT or type_.role != "client" or type_.protocol is None:
            raise member.type.span.error("a service's members are `client_end`s of protocols")
        if type_.nullable:
            raise member.type.span.error("members of a service can't be optional")
        compilation.require_if_own(type_.protocol, member.span)
        if first is None:
            first = member
        assert first.type is not None
        assert first.type.type.protocol is not None
        if first.type.type.protocol.transport != type_.protocol.transport:
            raise member.span.error(
                f"`{member.name}` has another transport than `{first.name}`: split the service"
            )
