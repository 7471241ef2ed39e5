"""A traced FIDL protocol whose messages contain sensitive values, and calls of all its methods."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from fidl_support.talk import ZX
from stretto_fidl.bindings import Vmo, channel
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import Client, DomainError, Server

SECRET = "hunter2-hunter2"
"""The value of every sensitive member and message."""

SOURCE = """
library test.bank;
using zx;

@sensitive
type Card = struct { number string; };

type Reason = strict enum : uint32 { BROKE = 1; };

type Method = flexible union { 1: card Card; @sensitive 2: iban string; 3: cash uint32; };

@trace("test.bank")
open protocol Bank {
    flexible Login(struct {
        user string:100;
        @sensitive password string:100;
    }) -> (struct { @sensitive token string; valid uint32; });
    strict Pay(struct { amount vector<uint64>:9000; how Method; known vector<Card>; })
        -> () error Reason;
    strict Send(resource struct { what zx.Handle:VMO; });
    @sensitive
    strict Whisper(struct { text string; });
    strict -> OnBalance(table { 1: amount int64; @sensitive 2: owner string; });
};
"""

IR = compile_sources({"bank.fidl": SOURCE}, dependencies={"zx.fidl": ZX})


class Bank:
    """Handles the test protocol Bank."""

    def __init__(self, names: Any) -> None:
        self.names = names

    def Login(self, request: Any) -> Any:  # noqa: N802
        assert request.password == SECRET
        return self.names.Bank_Login_Response(token=SECRET, valid=60)

    def Pay(self, request: Any) -> None:  # noqa: N802
        if len(request.amount) > 2:
            raise DomainError(self.names.Reason.BROKE)

    def Send(self, request: Any) -> None:  # noqa: N802
        assert request.what.read() == b"shared"
        request.what.close()

    def Whisper(self, request: Any) -> None:  # noqa: N802
        assert request.text == SECRET


def call_all_methods(names: Any) -> None:
    """Call each method of the protocol once or several times, over a channel.

    Args:
        names: The classes of the library.
    """
    near, far = channel()
    server = Server(names.Bank, far, Bank(names))
    serving = threading.Thread(target=server.serve)
    serving.start()
    with Client(names.Bank, near) as client:
        card = names.Card(number=SECRET)
        client.Login(user="me", password=SECRET)
        client.Pay(amount=[12], how=names.Method(card=card), known=[card])
        client.Pay(amount=[12, 1], how=names.Method(iban=SECRET), known=[])
        with suppress(DomainError):
            client.Pay(amount=list(range(8000)), how=names.Method(cash=7), known=[])
        client.Send(what=Vmo.create(b"shared"))
        client.Whisper(text=SECRET)
        server.OnBalance(amount=-5, owner=SECRET)
        assert client.next_event().payload.owner == SECRET
    serving.join()
