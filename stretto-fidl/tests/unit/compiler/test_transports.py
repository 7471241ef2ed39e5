from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of

PROTOCOLS = """
@transport("Driver") protocol Driver {};
@transport("Banjo") protocol Banjo {};
protocol Channel {};
type Deep = resource table { 1: deeper resource union { 1: ends vector<client_end:Driver>; }; };
type Ring = resource struct { next box<Ring>; deep Deep; };
"""


def sending(transport: str, type_: str) -> str:
    return (
        f'{PROTOCOLS}@transport("{transport}") protocol P '
        f"{{ strict M() -> (resource struct {{ a {type_}; }}); }};"
    )


@pytest.mark.parametrize(
    ("transport", "type_"),
    [
        ("Channel", "client_end:Channel"),
        ("Driver", "client_end:Channel"),
        ("Driver", "server_end:Driver"),
        ("Driver", "Ring"),
        ("Banjo", "client_end:Banjo"),
    ],
)
def test_types_carried_by_a_transport_are_accepted(transport: str, type_: str) -> None:
    assert compiled(sending(transport, type_))["protocol_declarations"]


@pytest.mark.parametrize(
    ("transport", "type_"),
    [
        ("Channel", "client_end:Driver"),
        ("Channel", "array<server_end:Driver, 2>"),
        ("Channel", "Deep"),
        ("Channel", "Ring"),
        ("Banjo", "client_end:Driver"),
        ("Syscall", "client_end:Driver"),
    ],
)
def test_types_of_another_transport_are_refused(transport: str, type_: str) -> None:
    reason = error_of(sending(transport, type_)).reason
    assert reason == (
        f"`M` sends an endpoint or handle of transport Driver, which {transport}, "
        "the transport of its protocol, can't carry"
    )
