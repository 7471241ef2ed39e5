"""Message bodies are recorded only on request and without sensitive fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.base.rpc_hooks import ONE_WAY, RpcChannel, RpcMethod
from stretto.flows import install
from stretto.flows.tracer import FlowTracer
from stretto.ipc.client import Client
from stretto.ipc.host import HostConnection, HostedService
from stretto.ipc.service import Method, ServiceDescriptor
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.generated import load as load_proto
from tests.support.generated import module_of
from tests.support.recorded_events import END, bodies, record
from tests.support.traced_greeter import flows_installed

SENSITIVE = "<sensitive>"
SECRET = "in no trace"

ACCOUNT = """
syntax = "proto3";
package test;
import "stretto/trace_options.proto";
service Bank {
  option (stretto.trace_all) = "test.bank";
  rpc Open(Account) returns (Account);
  rpc Hush(Account) returns (Account) { option (stretto.trace) = ""; }
}
message Account {
  enum Level { LOW = 0; HIGH = 1; }
  string user = 1;
  string password = 2 [debug_redact = true];
  Level level = 3;
  repeated Level levels = 4;
  repeated Account friends = 5;
  map<string, int32> limits = 6 [debug_redact = true];
  map<string, Level> others = 7;
}
"""


def test_protobuf_bodies_are_recorded_without_sensitive_fields(tmp_path: Path) -> None:
    (tmp_path / "account.proto").write_text(ACCOUNT)
    module = load_proto(module_of(tmp_path / "account.proto", "test_account")[1])
    account_type = module.Account
    methods = [Method(name, account_type, account_type) for name in module.BANK_METHODS]
    service = ServiceDescriptor("Bank", methods, module.BANK_TRACE)
    account = account_type(
        user="me", password=SECRET, level=1, levels=[0, 1], limits={"a": 1},
        others={"b": 1}, friends=[account_type(user="you", password=SECRET)],
    )  # fmt: skip
    with flows_installed(bodies=True), record() as recorded:
        runner = FakeTaskRunner()
        pair = ConnectionPair(runner)
        client = Client(pair.client_outbox, None)
        handlers = {
            name: lambda request, deferred: deferred.resolve(request)
            for name in module.BANK_METHODS
        }
        host = HostConnection([HostedService(service, handlers)], pair.host_outbox, lambda: None)
        pair.connect(client, host)
        bound: list[Any] = []
        client.bind(service, bound.append, flow_key=7)
        runner.run_until_idle()
        for each in (account, account_type()):
            for name in module.BANK_METHODS:
                bound[0].invoke(name, each, lambda *_: None)
        runner.run_until_idle()
    body = {
        "user": "me", "password": SENSITIVE, "level": "HIGH", "levels": ["LOW", "HIGH"],
        "friends": [{"user": "you", "password": SENSITIVE}], "limits": SENSITIVE,
        "others": {"b": 1},
    }  # fmt: skip
    text = f"Account(user='me', password={SENSITIVE}, level=1, levels=[0, 1], friends=["
    assert repr(account).startswith(text)
    assert SECRET not in repr(account)
    expected = {("request", "Open"): [body], ("reply", "Open"): [body]}
    assert bodies(recorded.events, "send") == bodies(recorded.events, "receive") == expected
    assert SECRET.encode() not in recorded.trace


def test_body_that_cannot_be_decoded_is_marked() -> None:
    broken = RpcMethod("x", "Broken", 1, "test.bodies", lambda *_: 1 // 0)
    with flows_installed(), record() as recorded:
        hooks = FlowTracer(bodies=True)
        channel = RpcChannel(None, is_server=True, key=5)
        received = hooks.received(channel, broken, ONE_WAY, 0, 8, 0, 0, b"nonsense")
        assert received is not None
        with received:
            pass
    assert [e.args["body"] for e in recorded.events if e.kind != END] == ["<not decodable>"]


def test_bodies_given_as_a_str_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"bodies takes names of categories: \['bank'\]"):
        install(bodies="bank")
