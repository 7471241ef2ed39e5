"""Classes that describe protocols.

The classes aren't instantiated. Clients and servers (`stretto_fidl.transport`) get a function for
each of a protocol's methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stretto_fidl.codec.types import Type, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE_WAY: Final = "one_way"
TWO_WAY: Final = "two_way"
EVENT: Final = "event"


class Method:
    """One method or event of a protocol.

    Attributes:
        name: The name in the definition.
        ordinal: The number that identifies the method in messages.
        kind: `ONE_WAY`, `TWO_WAY` or `EVENT`.
        strict: Whether a peer without this method closes the channel.
        attributes: The values of the FIDL attributes by name: strings or bools. An attribute
            without an argument has the value True.
        composed: Whether the method comes from another protocol.
    """

    __slots__ = (
        "_error",
        "_request",
        "_response",
        "_success",
        "attributes",
        "composed",
        "kind",
        "name",
        "ordinal",
        "strict",
    )

    def __init__(
        self,
        name: str,
        ordinal: int,
        kind: str,
        *,
        strict: bool = False,
        request: Type | None = None,
        response: Type | None = None,
        success: Type | None = None,
        error: Type | None = None,
        attributes: Mapping[str, Any] | None = None,
        composed: bool = False,
    ) -> None:
        self.name, self.ordinal, self.kind, self.strict = name, ordinal, kind, strict
        self._request, self._response = request, response
        self._success, self._error = success, error
        self.attributes: Mapping[str, Any] = attributes or {}
        self.composed = composed

    @property
    def request(self) -> Any:
        """The class of the request's payload; None if it has no payload. Events have no request."""
        return _cls(self._request)

    @property
    def response(self) -> Any:
        """The class of the payload of the response or event; None if it has no payload.

        For a flexible or fallible two-way method this is the class of the result union: success,
        the method's error or the framework's error.
        """
        return _cls(self._response)

    @property
    def success(self) -> Any:
        """The class of the payload of success; None if `response` isn't a result union."""
        return _cls(self._success)

    @property
    def error(self) -> Any:
        """The method's error type: the class of an enum, or a type of the codec."""
        return _cls(self._error)

    @property
    def has_result(self) -> bool:
        """Whether `response` is a union of success and errors."""
        return self._success is not None or self._error is not None

    def __repr__(self) -> str:
        return f"<Method {self.name} {self.ordinal:#x} {self.kind}>"


def _cls(type_: Type | None) -> Any:
    if type_ is None:
        return None
    found, _ = resolve(type_)
    return getattr(found, "cls", None) or found


class Protocol:
    """Base of the classes of protocols.

    Attributes:
        NAME: The name with its library.
        OPENNESS: `open`, `ajar` or `closed`: it decides which unknown methods close the channel.
        TRANSPORT: The value of `@transport`, `Channel` by default.
        ATTRIBUTES: The attributes by name, as in `Method.attributes`.
        METHODS: All methods and events, composed ones included.
        BY_NAME: The methods by name.
        BY_ORDINAL: The methods by ordinal.
    """

    NAME: ClassVar[str]
    OPENNESS: ClassVar[str] = "open"
    TRANSPORT: ClassVar[str] = "Channel"
    ATTRIBUTES: ClassVar[Mapping[str, Any]] = {}
    METHODS: ClassVar[tuple[Method, ...]] = ()
    BY_NAME: ClassVar[Mapping[str, Method]] = {}
    BY_ORDINAL: ClassVar[Mapping[int, Method]] = {}

    def __init_subclass__(cls) -> None:
        cls.BY_NAME = {method.name: method for method in cls.METHODS}
        cls.BY_ORDINAL = {method.ordinal: method for method in cls.METHODS}


class Service:
    """Base of the classes of services.

    Attributes:
        NAME: The name with its library.
        MEMBERS: The full name of each member's protocol, by the name of the member.
    """

    NAME: ClassVar[str]
    MEMBERS: ClassVar[Mapping[str, str]] = {}
