from __future__ import annotations

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.protos import config, ipc, trace
from stretto.protozero import generate
from stretto.protozero.generator import descriptor_set, proto_parser

ROOT = Path(__file__).parents[3]
PROTOC = shutil.which("protoc")


@pytest.fixture(scope="module")
def outputs() -> dict[str, str]:
    pytest.importorskip("perfetto", reason="the perfetto distribution holds the schemas")
    return generate.outputs(ROOT)


def test_checked_in_files_equal_the_output_of_the_generator(outputs: dict[str, str]) -> None:
    stale = [path for path, text in outputs.items() if (ROOT / path).read_text("utf-8") != text]
    assert not stale, "run `make generate`"


def test_command_writes_every_generated_file(outputs: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / generate.IPC_PROTOS, tmp_path / generate.IPC_PROTOS)
    (tmp_path / "native/core").mkdir(parents=True)
    generate.main([str(tmp_path)])
    written = {path: (tmp_path / path).read_text("utf-8") for path in outputs}
    assert written == outputs


def test_generator_outside_of_a_checkout_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="name a checkout"):
        generate.main([str(tmp_path)])


@pytest.mark.skipif(PROTOC is None, reason="protoc is not installed")
def test_protoc_and_the_parser_of_stretto_read_the_same_schemas(tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    from google.protobuf import descriptor_pb2
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    perfetto = descriptor_pb2.FileDescriptorSet()
    perfetto.file.add().ParseFromString(perfetto_trace_pb2.DESCRIPTOR.serialized_pb)
    perfetto.file.add().ParseFromString(descriptor_pb2.DESCRIPTOR.serialized_pb)
    (tmp_path / "perfetto").write_bytes(perfetto.SerializeToString())
    paths = sorted((ROOT / generate.IPC_PROTOS).glob("*.proto"))
    folder = f"-I{ROOT / generate.IPC_PROTOS}"
    known = descriptor_set.read_module(generate.PERFETTO_MODULE)
    for path, ours in zip(paths, proto_parser.parse(paths, known), strict=True):
        subprocess.run(
            [
                str(PROTOC),
                f"--descriptor_set_in={tmp_path / 'perfetto'}",
                folder,
                f"-I{ROOT / 'src/stretto/protos'}",
                f"-o{tmp_path / 'out'}",
                path.name,
            ],
            check=True,
        )
        assert descriptor_set.read_descriptor_set((tmp_path / "out").read_bytes()) == [ours]


GENERATED = sorted(
    path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
    for path in (ROOT / "src").rglob("*.py")
    if "Table as _Table\n" in path.read_text("utf-8") and "generator" not in path.parts
)


def names_in_stub(module: str) -> set[str]:
    """Return the names that `import *` imports according to the stub."""
    text = (ROOT / "src" / module.replace(".", "/")).with_suffix(".pyi").read_text("utf-8")
    names: set[str] = set()
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
        elif isinstance(statement, ast.ImportFrom):
            names |= {each.name for each in statement.names if each.asname == each.name}
    return {name for name in names if not name.startswith("_")}


def test_generated_modules_are_found() -> None:
    assert {"stretto.protos.config", "stretto.protos.ipc", "stretto.protos.trace"} < {*GENERATED}
    assert len(GENERATED) > 10


@pytest.mark.parametrize("module", GENERATED)
def test_import_star_imports_the_names_of_the_stub(module: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {module} import *", names)
    del names["__builtins__"]
    expected = names_in_stub(module)
    assert {*names} == expected
    assert {*dir(importlib.import_module(module))} == expected
    assert all(names[name] is getattr(importlib.import_module(module), name) for name in names)


def test_ipc_method_ids_equal_those_of_perfetto() -> None:
    assert ipc.PRODUCER_PORT_METHODS["InitializeConnection"] == 1
    assert ipc.PRODUCER_PORT_METHODS["CommitData"] == 4
    assert ipc.PRODUCER_PORT_METHODS["UpdateDataSource"] == 12
    assert ipc.CONSUMER_PORT_METHODS["CloneSession"] == 15
    assert ipc.RELAY_PORT_METHODS == {"InitRelay": 1, "SyncClock": 2}
    for name, methods in vars(ipc).items():
        if name.endswith("_METHODS"):
            for method in methods:
                assert method == "CommitData" or f"{method}Request" in dir(ipc)
                assert f"{method}Response" in dir(ipc)


def test_message_classes_are_shared_between_modules() -> None:
    packet = trace.TracePacket(trace_config=config.TraceConfig(duration_ms=1))
    assert type(trace.TracePacket.decode(packet.encode()).trace_config) is config.TraceConfig
    setup = ipc.GetAsyncCommandResponse.SetupDataSource(config=config.DataSourceConfig(name="x"))
    assert setup.encode() == bytes.fromhex("12030a0178")


def test_ipc_frame_is_encoded_in_the_field_order_of_perfetto() -> None:
    """Perfetto writes the field request_id (2) first and data_for_testing (1) last."""
    frame = ipc.IPCFrame(data_for_testing=[b"x"], request_id=1)
    frame.msg_bind_service = ipc.IPCFrame.BindService(service_name="ProducerPort")
    name = b"ProducerPort"
    assert frame.encode() == b"\x10\x01\x1a\x0e\x0a\x0c" + name + b"\x0a\x01x"


def test_generated_modules_do_not_import_protobuf() -> None:
    code = """
import sys
from stretto.protos import config, ipc, trace
message = config.TraceConfig(duration_ms=1)
assert config.TraceConfig.decode(message.encode()) == message
packet = trace.TracePacket.Writer()
packet.set_track_event().set_name("x")
assert trace.TracePacket.decode(packet.finish()).track_event.name == "x"
assert ipc.IPCFrame.decode(b"").which_oneof("msg") is None
print(*sys.modules)
"""
    heavy = {"google", "perfetto", "typing", "dataclasses", "enum", "re", "inspect", "threading"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert heavy.isdisjoint(done.stdout.split())
