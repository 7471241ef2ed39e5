"""The examples and statements in docs/flows.md are true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import stretto
from stretto import flows
from stretto.client.track_event.category_config import is_category_enabled
from stretto.flows import installation
from stretto.flows.tracer import TRANSPORT_CATEGORY
from stretto.protos.config import TraceConfig
from stretto.protozero.text_format import parse_text

TEXT = (Path(__file__).parents[3] / "docs" / "flows.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_documented_examples_run() -> None:
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        if "grpcio" in block:
            block = "\n".join(line for line in block.splitlines() if "grpc" not in line)
        try:
            exec(compile(block, "docs/flows.md", "exec"), {"stretto": stretto})
        finally:
            flows.uninstall()


def test_documented_config_enables_the_transport_category() -> None:
    names: dict[str, Any] = {}
    (block,) = (block for block in BLOCKS if "TracingSession" in block)
    exec(compile(block, "docs/flows.md", "exec"), names)
    assert isinstance(names["session"], stretto.TracingSession)
    (source,) = parse_text(names["config"], TraceConfig).data_sources
    wanted = source.config.track_event_config
    assert is_category_enabled(wanted, TRANSPORT_CATEGORY, ["slow"])
    assert is_category_enabled(wanted, "shop", [])
    assert not is_category_enabled(wanted, "other", ["slow"])


def test_each_reason_for_a_missing_flow_is_documented() -> None:
    explained = re.findall(
        r"`([a-z ]+)`", "\n".join(re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE))
    )
    documented = (installation.stats.__doc__ or "").replace("\n      ", " ")
    for reason in re.findall(r"`([a-z ]+)`", documented):
        if reason != "traceparent":
            assert reason in explained, reason
