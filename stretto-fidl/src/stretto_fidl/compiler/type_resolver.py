"""Resolves written types: finds names, applies parameters and constraints."""

from __future__ import annotations

from stretto_fidl.compiler import declarations, types
from stretto_fidl.compiler.declarations import (
    AliasDecl,
    LayoutDecl,
    ProtocolDecl,
    ResourceDecl,
)
from stretto_fidl.compiler.names import with_article
from stretto_fidl.compiler.syntax_tree import (
    Constant,
    Identifier,
    Layout,
    Reference,
    TypeConstructor,
)
from stretto_fidl.compiler.types import AliasUse, Type, TypeUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.constants import Evaluator
    from stretto_fidl.compiler.declarations import Decl
    from stretto_fidl.compiler.requirements import Requirements
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.values import Value

_CAN_BE_OPTIONAL = (
    types.STRING,
    types.VECTOR,
    types.HANDLE,
    types.ENDPOINT,
)
MAX_TYPE_DEPTH = 64
"""The maximum depth of nested vectors and arrays, including those behind aliases."""
_NO_ROOM = "takes no further constraint here"


class TypeResolver:
    """Resolves the types of one library.

    Args:
        required: Compiles the declarations of named types.
        constants: Evaluates sizes and constraints.
        builtin_handle: The declaration of `handle` in the old syntax.
    """

    def __init__(
        self,
        required: Requirements,
        constants: Evaluator,
        builtin_handle: ResourceDecl | None,
    ) -> None:
        self._required = required
        self._constants = constants
        self._builtin_handle = builtin_handle

    def resolve(self, syntax: TypeConstructor) -> TypeUse:
        """Resolve a written type.

        Raises:
            CompileError: There is no such type, or its parameters or constraints are wrong.
        """
        with self._required.nested(syntax.span):
            use = self._target(syntax)
            for constraint in syntax.constraints:
                self._constrain(use, constraint)
            if syntax.optional is not None:
                self._question_mark(use, syntax.optional)
            self._finish(use)
            return use

    def _finish(self, use: TypeUse) -> None:
        type_ = use.type
        if type_.kind == types.ENDPOINT and type_.protocol is None:
            raise use.span.error(f"`{type_.text}` needs a protocol: `{type_.text}:Protocol`")
        if use.alias is not None:
            use.alias.nullable, use.alias.size = use.nullable, use.bound
            use.alias.rights = use.rights

    def _target(self, syntax: TypeConstructor) -> TypeUse:
        if isinstance(syntax.target, Layout):
            declared = syntax.target.declared
            assert isinstance(declared, LayoutDecl)
            self._no_parameters(syntax)
            return TypeUse(syntax.span, Type(types.IDENTIFIER, decl=declared))
        decl = self._required.scope.declaration(syntax.target)
        if decl is not None:
            return self._declared(syntax, decl)
        return self._built_in(syntax, syntax.target)

    def _declared(self, syntax: TypeConstructor, decl: Decl) -> TypeUse:
        self._no_parameters(syntax)
        if isinstance(decl, AliasDecl) and decl.kind == declarations.ALIAS:
            self._required.require(decl, syntax.span)
            assert decl.type is not None
            return TypeUse(syntax.span, types.copy(decl.type.type), AliasUse(decl))
        if isinstance(decl, ResourceDecl):
            self._required.require(decl, syntax.span)
            return TypeUse(syntax.span, Type(types.HANDLE, resource=decl))
        if isinstance(decl, ProtocolDecl):
            if syntax.old:
                endpoint = Type(types.ENDPOINT, role="client", protocol=decl)
                return TypeUse(syntax.span, endpoint)
            raise syntax.span.error(
                f"`{decl.name}` is a protocol: write `client_end:{decl.name}` or "
                f"`server_end:{decl.name}`"
            )
        if not isinstance(decl, LayoutDecl | AliasDecl):
            raise syntax.span.error(f"`{decl.name}` is {with_article(decl.kind)}, no type")
        return TypeUse(syntax.span, Type(types.IDENTIFIER, decl=decl))

    def _built_in(self, syntax: TypeConstructor, reference: Reference) -> TypeUse:
        name = reference.parts[-1]
        if reference.parts[:-1] in ((), ("fidl",)):
            use = self._built_in_named(syntax, name)
            if use is not None:
                return use
        raise self._required.unknown(reference)

    def _built_in_named(self, syntax: TypeConstructor, name: str) -> TypeUse | None:
        span = syntax.span
        if name in types.SIZES or name == "byte":
            self._no_parameters(syntax)
            return TypeUse(span, types.primitive("uint8" if name == "byte" else name))
        if name == "string":
            self._no_parameters(syntax)
            return TypeUse(span, Type(types.STRING))
        if name == "bytes":
            self._no_parameters(syntax)
            element = TypeUse(span, types.primitive("uint8"))
            return TypeUse(span, Type(types.VECTOR, element=element))
        if name in ("vector", "array", "box", "string_array", "request", "handle"):
            return getattr(self, f"_{name}")(syntax)  # type: ignore[no-any-return]
        if name in ("client_end", "server_end"):
            self._no_parameters(syntax)
            return TypeUse(span, Type(types.ENDPOINT, role=name.removesuffix("_end")))
        if name == "framework_err" and len(syntax.target.parts) == 2:  # type: ignore[union-attr]
            return TypeUse(span, Type(types.INTERNAL, "framework_error"))
        return None

    def _no_parameters(self, syntax: TypeConstructor) -> None:
        if syntax.parameters:
            raise syntax.span.error("this type takes no parameters in angle brackets")

    def _parameters(self, syntax: TypeConstructor, *expected: str) -> None:
        if len(syntax.parameters) != len(expected):
            wanted = f"<{', '.join(expected)}>"
            raise syntax.span.error(
                f"`{syntax.target}` takes {len(expected)} parameters, {wanted}, "
                f"not {len(syntax.parameters)}"
            )

    def _element(self, syntax: TypeConstructor) -> TypeUse:
        parameter = syntax.parameters[0]
        if not isinstance(parameter, TypeConstructor):
            raise parameter.span.error(f"this must be a type: `{syntax.target}<T>`")
        element = self.resolve(parameter)
        if element.type.depth >= MAX_TYPE_DEPTH:
            raise parameter.span.error(
                f"more than {MAX_TYPE_DEPTH} types in each other: put some into structs"
            )
        return element

    def _size(self, syntax: TypeConstructor) -> Value:
        parameter = _as_constant(syntax.parameters[-1])
        size = self._constants.evaluate(parameter, types.primitive("uint32"))
        if size.integer == 0:
            raise parameter.span.error(f"the size of `{syntax.target}` must be at least 1")
        return size

    def _vector(self, syntax: TypeConstructor) -> TypeUse:
        self._parameters(syntax, "T")
        element = self._element(syntax)
        return TypeUse(syntax.span, Type(types.VECTOR, element=element), arguments=[element])

    def _array(self, syntax: TypeConstructor) -> TypeUse:
        self._parameters(syntax, "T", "N")
        element = self._element(syntax)
        size = self._size(syntax)
        type_ = Type(types.ARRAY, element=element, size=size.integer)
        return TypeUse(syntax.span, type_, bound=size, arguments=[element])

    def _string_array(self, syntax: TypeConstructor) -> TypeUse:
        self._parameters(syntax, "N")
        size = self._size(syntax)
        return TypeUse(syntax.span, Type(types.STRING_ARRAY, size=size.integer), bound=size)

    def _box(self, syntax: TypeConstructor) -> TypeUse:
        self._parameters(syntax, "T")
        element = self._element(syntax)
        self._check_boxable(element)
        return TypeUse(syntax.span, _boxed(element), arguments=[element])

    def _check_boxable(self, element: TypeUse) -> None:
        decl, type_ = element.type.decl, element.type
        if type_.nullable:
            raise element.span.error("what is boxed can't be optional as well: remove `optional`")
        if decl is not None and decl.kind == declarations.STRUCT:
            return
        if type_.kind in _CAN_BE_OPTIONAL or (decl and decl.kind == declarations.UNION):
            raise element.span.error(
                f"`{type_.text}` can't be boxed: write `{type_.text.split('/')[-1]}:optional`"
            )
        raise element.span.error(f"`{type_.text}` can't be boxed: only structs can")

    def _request(self, syntax: TypeConstructor) -> TypeUse | None:
        """Resolve `request<Protocol>` of the old syntax; return None for any other type."""
        if not syntax.old:
            return None
        self._parameters(syntax, "Protocol")
        parameter = syntax.parameters[0]
        if not isinstance(parameter, TypeConstructor):
            raise parameter.span.error("this must be a protocol")
        type_ = types.copy(self.resolve(parameter).type)
        if type_.kind != types.ENDPOINT:
            raise parameter.span.error("this must be a protocol")
        type_.role = "server"
        return TypeUse(syntax.span, type_)

    def _handle(self, syntax: TypeConstructor) -> TypeUse | None:
        """Resolve a handle type of the old syntax, such as `handle` or `handle<vmo, rights>`."""
        if not syntax.old:
            return None
        type_ = Type(types.HANDLE, resource=self._builtin_handle)
        use = TypeUse(syntax.span, type_)
        for position, parameter in enumerate(syntax.parameters):
            if position == 0:
                self._old_subtype(type_, parameter)
            else:
                self._rights(use, _as_constant(parameter))
        return use

    def _old_subtype(self, type_: Type, parameter: TypeConstructor | Constant) -> None:
        name = str(parameter.target) if isinstance(parameter, TypeConstructor) else ""
        numbers = {text: number for number, text in types.HANDLE_SUBTYPES.items()}
        if name not in numbers:
            raise parameter.span.error("this isn't a kind of handle, such as `vmo` or `channel`")
        type_.object_type, type_.object_type_name = numbers[name], name

    def _question_mark(self, use: TypeUse, span: Span) -> None:
        """Apply the `?` of `T?` in the old syntax. A struct becomes a box."""
        decl = use.type.decl
        if decl is not None and decl.kind == declarations.STRUCT:
            element = TypeUse(use.span, use.type, use.alias)
            use.type, use.alias, use.arguments = _boxed(element), None, [element]
            return
        self._optional(use, span)

    def _constrain(self, use: TypeUse, constraint: Constant) -> None:
        if self._is_built_in(constraint, "optional"):
            self._optional(use, constraint.span)
        elif use.type.kind in (types.VECTOR, types.STRING):
            self._bound(use, constraint)
        elif use.type.kind == types.HANDLE:
            self._handle_constraint(use, constraint)
        elif use.type.kind == types.ENDPOINT:
            self._protocol(use, constraint)
        else:
            raise constraint.span.error(f"`{use.type.text}` {_NO_ROOM}: remove it")

    def _is_built_in(self, constraint: Constant, name: str) -> bool:
        """Return whether a constraint is the name of a built-in type that no library declares."""
        if not isinstance(constraint, Identifier) or constraint.reference.parts != (name,):
            return False
        return self._required.scope.declaration(constraint.reference) is None

    def _optional(self, use: TypeUse, span: Span) -> None:
        type_, decl = use.type, use.type.decl
        if type_.nullable:
            raise span.error("this is optional already: remove one `optional`")
        if decl is not None and decl.kind == declarations.STRUCT:
            raise span.error(f"a struct can't be optional: write `box<{decl.name}>`")
        is_union = decl is not None and decl.kind == declarations.UNION
        if type_.kind not in _CAN_BE_OPTIONAL and not is_union:
            raise span.error(f"`{type_.text}` can't be optional")
        type_.nullable = use.nullable = True

    def _bound(self, use: TypeUse, constraint: Constant) -> None:
        if use.type.size is not None:
            raise constraint.span.error("this has a bound already")
        if self._is_built_in(constraint, "MAX"):
            return  # The constraint MAX is no bound, because no message is so large.
        value = self._constants.evaluate(constraint, types.primitive("uint32"))
        use.bound, use.type.size = value, value.integer

    def _handle_constraint(self, use: TypeUse, constraint: Constant) -> None:
        if use.type.object_type == 0 and not use.type.object_type_name:
            if self._subtype(use.type, constraint):
                return
            raise constraint.span.error("this isn't a subtype of this resource")
        if self._subtype(types.copy(use.type), constraint):
            raise constraint.span.error("the kind of this handle is given already")
        self._rights(use, constraint)

    def _subtype(self, type_: Type, constraint: Constant) -> bool:
        resource = type_.resource
        assert resource is not None
        subtype = resource.property_named("subtype")
        if subtype is None or not isinstance(constraint, Identifier):
            return False
        assert subtype.type is not None
        owner = subtype.type.type.decl
        if not isinstance(owner, LayoutDecl):
            return False
        member = self._required.scope.member_of(owner, constraint.reference.parts[-1])
        if member is None or member.value is None:
            return False
        type_.object_type, type_.object_type_name = member.value.integer, member.name.lower()
        return True

    def _rights(self, use: TypeUse, constraint: Constant) -> None:
        resource = use.type.resource
        rights = resource.property_named("rights") if resource is not None else None
        if use.type.rights != types.SAME_RIGHTS:
            raise constraint.span.error("the rights of this handle are given already")
        if rights is None or rights.type is None:
            raise constraint.span.error("this resource has no rights")
        use.rights = self._constants.evaluate(constraint, rights.type.type)
        use.type.rights = use.rights.integer

    def _protocol(self, use: TypeUse, constraint: Constant) -> None:
        if use.type.protocol is not None:
            raise constraint.span.error(f"`{use.type.text}` {_NO_ROOM}: its protocol is known")
        decl = None
        if isinstance(constraint, Identifier):
            decl = self._required.scope.declaration(constraint.reference)
            if decl is None:
                raise self._required.unknown(constraint.reference)
        if not isinstance(decl, ProtocolDecl):
            raise constraint.span.error(f"`{constraint.span.text}` isn't a protocol")
        use.type.protocol = decl


def _boxed(element: TypeUse) -> Type:
    return Type(types.BOX, element=element, nullable=True, decl=element.type.decl)


def _as_constant(parameter: TypeConstructor | Constant) -> Constant:
    """Return a parameter as a constant. The parser reads a lone name as a type."""
    if not isinstance(parameter, TypeConstructor):
        return parameter
    if isinstance(parameter.target, Layout) or parameter.parameters or parameter.constraints:
        raise parameter.span.error("this must be a constant")
    return Identifier(parameter.span, parameter.target)
