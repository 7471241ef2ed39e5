"""Profiles of malloc in recorded programs, read by the real trace processor."""

from __future__ import annotations

import shutil
import subprocess
import sys
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import alone, check_trace, record

KB, MB = 1 << 10, 1 << 20
INTERVAL = 4 * KB
BUILD_ID = "0123456789abcdef" * 2

HELD = """
with recursive stack(leaf, id, parent, frame) as (
  select id, id, parent_id, frame_id from stack_profile_callsite
  union all select s.leaf, c.id, c.parent_id, c.frame_id
  from stack s join stack_profile_callsite c on c.id = s.parent
)
select pid, f.name, sum(a.size), sum(max(a.size, 0)) from heap_profile_allocation a
join process using (upid)
join (select distinct leaf, frame from stack) s on s.leaf = a.callsite_id
join stack_profile_frame f on f.id = s.frame
where a.heap_name = 'libc.malloc' group by 1, 2
"""
"""Bytes held and bytes allocated below each function of each process."""


def held(loaded: Any) -> dict[int, dict[str, tuple[int, int]]]:
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for pid, name, size, allocated in loaded.query(HELD):
        found.setdefault(pid, {})[name] = size, allocated
    return found


def is_estimate(estimate: int, size: int) -> bool:
    """Whether an estimate is within 4 standard errors; one test in thousands fails by chance."""
    return abs(estimate - size) <= 4 * sqrt(INTERVAL * size)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("native_heap") / "native_heap"
    source = Path(__file__).with_name("native_heap.c")
    # Without frame pointers, as most programs are compiled.
    command = [compiler, "-O2", "-D_GNU_SOURCE", "-fomit-frame-pointer", "-fno-builtin-malloc"]
    command.append(f"-Wl,--build-id=0x{BUILD_ID}")
    subprocess.run([*command, "-o", path, source, "-lpthread", "-ldl"], check=True)
    return str(path)


STATUS = {"return": 3, "_exit": 5, "kill": -9}


@pytest.mark.parametrize("end", STATUS)
def test_what_a_c_program_holds_is_shown_however_it_ends(
    oracle: Any, tmp_path: Path, program: str, end: str
) -> None:
    bare = alone(program, end)
    run = record(tmp_path / "t.pftrace", "--native-heap=4k", program, end)
    assert run.stdout == bare.stdout == "200 signals\n15702 blocks\n"
    assert run.status == STATUS[end]
    assert run.stderr.splitlines()[1].startswith("  memory: ")
    loaded = check_trace(oracle, run.trace)
    (functions,) = held(loaded).values()
    sizes = {"hold_much": 8, "hold_less": 4, "hold_aligned": 2, "hold_in_thread": 4}
    for name, size in sizes.items():
        assert is_estimate(functions[name][0], size * MB), name
    assert functions["grow"][0] == 3 * MB
    assert functions["churn"][0] <= 2 * INTERVAL
    assert is_estimate(functions["churn"][1], 30 * MB)
    assert {"main", "__libc_start_main"} <= {name.split("@")[0] for name in functions}
    ((name, build_id),) = loaded.query(
        "select m.name, m.build_id from stack_profile_mapping m join stack_profile_frame f"
        " on f.mapping = m.id where f.name = 'hold_much'"
    )
    assert (name, build_id) == (program, BUILD_ID)
    processes = loaded.query("select name, cmdline from process where name is not null")
    assert (program, f"{program} {end}") in processes


def test_child_of_a_fork_has_its_own_profile(oracle: Any, tmp_path: Path, program: str) -> None:
    run = record(tmp_path / "t.pftrace", "--native-heap=4k", program, "fork")
    assert run.status == 3
    processes = held(check_trace(oracle, run.trace))
    (child,) = (each for each in processes.values() if "hold_in_child" in each)
    (parent,) = (each for each in processes.values() if "hold_much" in each)
    assert is_estimate(child["hold_in_child"][0], 6 * MB)
    assert "hold_much" not in child
    assert is_estimate(parent["hold_much"][0], 8 * MB)


def test_memory_of_a_program_that_is_replaced_is_free(
    oracle: Any, tmp_path: Path, program: str
) -> None:
    run = record(tmp_path / "t.pftrace", "--native-heap=4k", program, "exec")
    assert run.status == 5
    (functions,) = held(check_trace(oracle, run.trace)).values()
    assert is_estimate(functions["hold_much"][0], 8 * MB)
    assert is_estimate(functions["hold_much"][1], 16 * MB)


@pytest.mark.parametrize("end", ["exec true", "exec sleep"])
def test_memory_is_free_after_exec_of_a_program_that_allocates_little(
    oracle: Any, tmp_path: Path, program: str, end: str
) -> None:
    run = record(tmp_path / "t.pftrace", "--native-heap=64k", program, end)
    assert run.status == 0
    processes = held(check_trace(oracle, run.trace)).values()
    (functions,) = (each for each in processes if "hold_much" in each)
    assert functions["hold_much"][0] == 0
    assert functions["hold_much"][1] > 4 * MB


def test_maximum_is_shown(oracle: Any, tmp_path: Path, program: str) -> None:
    run = record(tmp_path / "t.pftrace", "--native-heap=4k", "--heap-max", program)
    (functions,) = held(check_trace(oracle, run.trace)).values()
    assert is_estimate(functions["hold_much"][0], 8 * MB)
    assert functions.get("churn", (0, 0))[0] <= 2 * INTERVAL  # It held one block at a time.


PYTHON = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def hold():
    return [libc.malloc(1000) for _ in range(6 * 1024)]
def allocate():
    return [bytes(1000) for _ in range(6 * 1024)]
kept = hold(), allocate()
time.sleep(0.8)  # sleep: there is a dump every 200 ms
"""


def test_python_program_has_both_profiles(oracle: Any, tmp_path: Path) -> None:
    script = tmp_path / "both.py"
    script.write_text(PYTHON)
    options = ["--heap=4k", "--native-heap=4k", "--heap-every", "200ms"]
    run = record(tmp_path / "t.pftrace", *options, str(script))
    assert run.status == 0
    assert run.stderr.count("Traceback") == 0
    loaded = check_trace(oracle, run.trace)
    (native,) = held(loaded).values()
    outermost = "Py_BytesMain" if "Py_BytesMain" in native else "main"
    assert native[outermost][0] > 5.5 * MB
    python = loaded.query(
        "select sum(a.size), count(distinct a.ts) from heap_profile_allocation a"
        " join stack_profile_callsite c on c.id = a.callsite_id"
        " join stack_profile_frame f on f.id = c.frame_id"
        " where a.heap_name = 'python.obj' and f.name like 'allocate%'"
    )
    assert is_estimate(python[0][0], 6 * 1024 * 1033)
    (dumps,) = loaded.query(
        "select count(distinct ts) from heap_profile_allocation where heap_name = 'libc.malloc'"
    )
    assert dumps[0] >= 2
    names = {name for (name,) in loaded.query("select name from process where pid is not null")}
    assert "both.py" in names


def test_other_python_without_the_library_is_refused_in_words(tmp_path: Path) -> None:
    for options in (["--attach", "1"], ["--system", sys.executable]):
        run = record(tmp_path / "t.pftrace", "--native-heap", *options)
        assert run.status == 2
        assert "--native-heap doesn't go with" in run.stderr
