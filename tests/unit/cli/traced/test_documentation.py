"""The examples in docs/traced.md are valid."""

from __future__ import annotations

import configparser
import grp
import re
import shlex

import pytest

from stretto.cli.traced.activation import KINDS
from stretto.cli.traced.arguments import TracedOptions
from tests.support.sources import ROOT

TEXT = (ROOT / "docs" / "traced.md").read_text()
UNITS = re.findall(r"```ini\n# (traced[-.a-z]+)\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(autouse=True)
def groups(monkeypatch):
    """Make the lookup of every group in the examples succeed."""
    monkeypatch.setattr(grp, "getgrnam", lambda _: grp.getgrgid(0))


def parse(text: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return unit


def test_page_contains_systemd_units_for_a_user_and_for_the_machine():
    assert [name for name, _ in UNITS].count("traced.service") == 2


@pytest.mark.parametrize(("name", "text"), UNITS)
def test_documented_systemd_units_are_valid(name, text):
    unit = parse(text)
    if name.endswith(".socket"):
        assert unit["Socket"]["FileDescriptorName"] == name.removesuffix(".socket")[7:]
        assert unit["Socket"]["FileDescriptorName"] in KINDS
        assert unit["Socket"]["Service"] == "traced.service"
    else:
        assert unit["Service"]["Type"] == "notify"
        program, verb, *options = shlex.split(unit["Service"]["ExecStart"])
        assert (program.rsplit("/", 1)[1], verb) == ("stretto", "traced")
        TracedOptions(options)


def test_documented_command_lines_are_valid():
    lines = re.findall(r"^stretto traced( [^>\n]*?)?(?:  .*|2>>.*)?$", TEXT, re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        TracedOptions(shlex.split(line))


def test_all_options_of_the_command_are_documented():
    options = set(re.findall(r"--[a-z-]+", TEXT))
    for option in ("--background", "--pid-file", "--set-socket-permissions"):
        assert option in options
    for option in ("--enable-relay-endpoint", "--enable-relay-endpoint-on"):
        assert option in options
    assert "--allow-network-consumers" in options
