"""Bodies of FIDL messages are recorded if requested, without sensitive values."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from fidl_support import bank as fidl_bank
from stretto.base.rpc_hooks import ONE_WAY, RpcChannel, RpcMethod
from stretto.flows.tracer import FlowTracer
from stretto_fidl.bindings import channel, load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import Client, DomainError, Server
from stretto_fidl.transport.described import described
from tests.support.generated import load_text
from tests.support.recorded_events import END, bodies, record
from tests.support.traced_greeter import flows_installed

SENSITIVE = "<sensitive>"
LOGIN = {"user": "me", "password": SENSITIVE}
MANY = [*range(32), "... 7968 more"]
EXPECTED = {
    ("request", "Login"): [LOGIN],
    ("reply", "Login"): [{"response": {"token": SENSITIVE, "valid": 60}}],
    ("request", "Pay"): [
        {"amount": [12], "how": {"card": SENSITIVE}, "known": SENSITIVE},
        {"amount": [12, 1], "how": {"iban": SENSITIVE}, "known": SENSITIVE},
        {"amount": MANY, "how": {"cash": 7}, "known": SENSITIVE},
    ],
    ("reply", "Pay"): [{"response": "{}"}] * 2 + [{"err": "Reason.BROKE"}],
    ("one-way", "Send"): [{"what": "<vmo>"}],
    ("one-way", "Whisper"): [SENSITIVE],
    ("event", "OnBalance"): [{"amount": -5, "owner": SENSITIVE}],
}


@pytest.fixture(params=["loaded", "generated"])
def bank(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "loaded":
        return load(fidl_bank.IR)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return load_text(generate(fidl_bank.IR)["test_bank.py"], "test_bank")


class TestRecordedBodies:
    @pytest.mark.parametrize("wanted", [True, ["test.other", "test.bank"]])
    def test_requested_bodies_are_recorded_without_sensitive_values(
        self, bank: Any, wanted: bool | list[str]
    ) -> None:
        with flows_installed(bodies=wanted), record() as recorded:
            fidl_bank.call_all_methods(bank)
        events = recorded.events
        assert bodies(events, "send") == bodies(events, "receive") == EXPECTED
        assert fidl_bank.SECRET.encode() not in recorded.trace

    def test_repr_of_payloads_hides_sensitive_values(self, bank: Any) -> None:
        """Log records and exceptions contain reprs, and traces may contain both."""
        assert repr(bank.Bank.BY_NAME["Whisper"].request(text="hunter2")) == SENSITIVE
        login = bank.Bank.BY_NAME["Login"].request(user="me", password="hunter2")
        assert repr(login) == f"BankLoginRequest(user='me', password={SENSITIVE})"
        assert repr(bank.Card(number="1")) == SENSITIVE

    @pytest.mark.parametrize("wanted", [False, [], ["test.other"]])
    def test_bodies_are_not_recorded_unless_requested(
        self, bank: Any, wanted: bool | list[str]
    ) -> None:
        with flows_installed(bodies=wanted), record() as recorded:
            fidl_bank.call_all_methods(bank)
        assert len(recorded.events) > 20
        assert bodies(recorded.events, "send") == bodies(recorded.events, "receive") == {}

    def test_method_ordinal_and_sizes_are_recorded_without_bodies(self, bank: Any) -> None:
        with flows_installed(), record() as recorded:
            fidl_bank.call_all_methods(bank)
        events = sorted(recorded.events, key=lambda event: event.timestamp)
        sent = [e.args for e in events if e.kind != END and e.args["method"] == "Send"]
        ordinal = bank.Bank.BY_NAME["Send"].ordinal
        assert sent == [
            {
                "role": role, "method": "Send", "service": "test.bank/Bank", "kind": "one-way",
                "ordinal": ordinal, "txid": 0, "bytes": 24, "handles": 1,
            }
            for role in ("send", "receive")
        ]  # fmt: skip
        login, *_ = (e.args for e in events if e.kind != END)
        assert login["txid"] >> 31 == 1
        assert "handles" not in login

    def test_each_recording_has_bodies_only_if_its_config_requests_them(self, bank: Any) -> None:
        for wanted in (True, False, True):
            with flows_installed(bodies=wanted), record() as recorded:
                fidl_bank.call_all_methods(bank)
            assert bool(bodies(recorded.events, "send")) == wanted

    def test_bodies_of_all_messages_of_a_channel_are_recorded(self, bank: Any) -> None:
        with (
            flows_installed(bodies=["rpc.transport"]),
            record(enabled=["rpc.transport"], disabled=["*"]) as recorded,
        ):
            fidl_bank.call_all_methods(bank)
        assert bodies(recorded.events, "receive") == EXPECTED


SECRETS = """
library test.secrets;
@sensitive alias Token = string;
type Card = struct { number string; };
@sensitive alias SecretCard = Card;
@sensitive alias Code = uint32;
@sensitive type Reason = flexible enum : uint32 { BROKE = 4242; };
"""
SHOP = """
library test.shop;
using test.secrets;
@trace("test.shop")
open protocol Shop {
    strict Login(struct { token test.secrets.Token; all vector<test.secrets.Token>; })
        -> (test.secrets.SecretCard);
    strict Pay(test.secrets.SecretCard) -> () error test.secrets.Code;
    strict Give(struct { why test.secrets.Reason; }) -> () error test.secrets.Reason;
    strict -> OnCard(test.secrets.SecretCard);
};
"""


class Shop:
    """Handles the test protocol Shop."""

    def __init__(self, secrets: Any) -> None:
        self._secrets = secrets

    def Login(self, request: Any) -> Any:  # noqa: N802
        return self._secrets.Card(number=request.token)

    def Pay(self, request: Any) -> None:  # noqa: N802
        raise DomainError(4242)

    def Give(self, request: Any) -> None:  # noqa: N802
        raise DomainError(request.why)


@pytest.fixture(params=["loaded", "generated"])
def shop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the classes of two libraries: `secrets`, and `shop`, which uses `secrets`."""
    secrets = compile_sources({"secrets.fidl": SECRETS})
    user = compile_sources({"shop.fidl": SHOP}, dependencies={"secrets.fidl": SECRETS})
    if request.param == "loaded":
        loaded = load(secrets)
        return loaded, load(user, [loaded])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    generated = load_text(generate(secrets)["test_secrets.py"], "test_secrets")
    return generated, load_text(generate(user)["test_shop.py"], "test_shop")


def test_sensitive_types_of_another_library_are_hidden(shop: tuple[Any, Any]) -> None:
    """Recorded bodies and error messages hide values of sensitive types."""
    secrets, names = shop
    near, far = channel()
    server = Server(names.Shop, far, Shop(secrets))
    errors = []
    with flows_installed(bodies=True), record() as recorded:
        serving = threading.Thread(target=server.serve)
        serving.start()
        with Client(names.Shop, near) as client:
            assert client.Login(token="hunter2", all=["hunter2"]).number == "hunter2"
            for call, arguments in ((client.Pay, {"number": "hunter2"}),
                                    (client.Give, {"why": 4242})):  # fmt: skip
                with pytest.raises(DomainError) as caught:
                    call(**arguments)
                assert caught.value.value == 4242
                errors.append(str(caught.value))
            server.OnCard(number="hunter2")
            assert client.next_event().payload.number == "hunter2"
        serving.join()
    assert errors == [f"the call failed: {SENSITIVE}"] * 2
    assert str(DomainError(secrets.Reason.BROKE)) == f"the call failed: {SENSITIVE}"
    assert (
        bodies(recorded.events, "send")
        == bodies(recorded.events, "receive")
        == {
            ("request", "Login"): [SENSITIVE],
            ("reply", "Login"): [SENSITIVE],
            ("request", "Pay"): [SENSITIVE],
            ("reply", "Pay"): [SENSITIVE],
            ("request", "Give"): [{"why": SENSITIVE}],
            ("reply", "Give"): [{"err": SENSITIVE}],
            ("event", "OnCard"): [SENSITIVE],
        }
    )
    assert b"hunter2" not in recorded.trace


def test_malformed_bodies_of_a_peer_are_not_recorded() -> None:
    bank = load(fidl_bank.IR)
    login = described(bank.Bank)[bank.Bank.BY_NAME["Login"].ordinal]
    broken = RpcMethod("x", "Broken", 1, "test.bank", lambda *_: 1 // 0)
    with flows_installed(), record() as recorded:
        hooks = FlowTracer(bodies=True)
        channel = RpcChannel(None, is_server=True, key=5)
        for method in (login, broken):
            seen = hooks.received(channel, method, ONE_WAY, 0, 8, 0, 0, b"nonsense")
            assert seen is not None
            with seen:
                pass
    assert [e.args["body"] for e in recorded.events if e.kind != END] == ["<not decodable>"] * 2
