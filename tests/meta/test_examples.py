"""The examples import only public packages: those in the reference of the site."""

from __future__ import annotations

from tests.support.sources import ROOT, imports, report, where

PUBLIC = {"stretto", "stretto.flows", "stretto.ipc", "stretto.testing"}
PUBLIC_FOLDERS = ("stretto.protos", "stretto.protozero")


def is_public(name: str) -> bool:
    """Return whether an example may import a name; `from a import b` imports `a.b`."""
    return (
        name in PUBLIC
        or name.rpartition(".")[0] in PUBLIC
        or name.startswith(tuple(f"{folder}." for folder in PUBLIC_FOLDERS))
    )


def test_examples_import_public_names_only() -> None:
    examples = sorted((ROOT / "examples").rglob("*.py"))
    assert len(examples) > 4
    report(
        [
            where(path, found.line, f"{found.module} is not public")
            for path in examples
            for found in imports(path)
            if found.module.partition(".")[0] == "stretto"
            and (not is_public(found.module) or "._" in found.module)
        ]
    )


def test_internal_names_are_not_public() -> None:
    assert is_public("stretto.ipc.serve")
    assert is_public("stretto.protos.trace.TracePacket")
    assert not is_public("stretto.ipc.client.Client")
    assert not is_public("stretto.base.unix_socket.UnixSocket")
