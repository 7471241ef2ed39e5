"""`linux.process_stats`, on files in the form of Linux 6.18 and 4.4."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.probes.process_stats import ProcessStats
from stretto.protos.config import ProcessStatsConfig
from stretto.protos.trace import ProcessStats as Stats
from stretto.protos.trace import ProcessTree, TracePacket
from tests.support.probing import Probing, write_files

STATUS = """\
Name:	{name}
Umask:	0022
State:	S (sleeping)
Tgid:	{tgid}
Ngid:	0
Pid:	{pid}
PPid:	1
TracerPid:	0
Uid:	1000	0	0	0
Gid:	0	0	0	0
FDSize:	256
Groups:	 
NStgid:	{tgid}
NSpid:	{nspid}
Kthread:	{kthread}
"""  # noqa: W291  # the kernel writes a blank behind `Groups:`
SIZES = """\
VmPeak:	    5508 kB
VmSize:	    5484 kB
VmLck:	       0 kB
VmPin:	       0 kB
VmHWM:	    4600 kB
VmRSS:	    4516 kB
RssAnon:	    1432 kB
RssFile:	    3084 kB
RssShmem:	       0 kB
VmData:	    1428 kB
VmSwap:	       0 kB
"""
ROLLUP = """\
55fd8fc54000-7ffdfbc5b000 ---p 00000000 00:00 0                          [rollup]
Rss:                1756 kB
Pss:                 203 kB
Pss_Dirty:           116 kB
Pss_Anon:            116 kB
Pss_File:             87 kB
Pss_Shmem:             0 kB
SwapPss:               5 kB
"""
STAT = "{pid} (a) b) S 1 77 77 0 -1 4194560 2 0 0 0 300 40 0 0 20 0 1 0 5555 5615616 1129 1844\n"
TICK = 10**9 // os.sysconf("SC_CLK_TCK")


def status(pid: int, name: str, tgid: int = 0, nspid: str = "", kthread: int = 0) -> str:
    return STATUS.format(pid=pid, name=name, tgid=tgid or pid, nspid=nspid or pid, kthread=kthread)


def add_process(root: Path, pid: int, name: str, *words: str, **entries: Any) -> None:
    """Write the files of a process. Without words of a command line, it is a kernel thread."""
    sizes = SIZES if words else ""
    text = status(pid, name, kthread=0 if words else 1, **entries) + sizes
    write_files(
        root,
        {
            f"proc/{pid}/status": text,
            f"proc/{pid}/cmdline": "".join(f"{word}\0" for word in words),
            f"proc/{pid}/stat": STAT.format(pid=pid),
            f"proc/{pid}/oom_score_adj": "-17\n",
            f"proc/{pid}/task/{pid}/status": text,
            **({f"proc/{pid}/smaps_rollup": ROLLUP} if words else {}),
        },
    )


def add_thread(root: Path, pid: int, tid: int, name: str, **entries: Any) -> None:
    text = status(tid, name, tgid=pid, **entries)
    write_files(root, {f"proc/{pid}/task/{tid}/status": text})


def add_fd(root: Path, pid: int, fd: int, path: str) -> None:
    folder = root / f"proc/{pid}/fd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(fd)).unlink(missing_ok=True)
    (folder / str(fd)).symlink_to(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    add_process(tmp_path, 2, "kthreadd")
    add_process(tmp_path, 77, "shop", "/usr/bin/shop", "", "--port=80")
    add_thread(tmp_path, 77, 78, "worker")
    write_files(tmp_path, {"proc/meminfo": "", "proc/self/status": status(77, "self")})
    return tmp_path


def probing(root: Path, **options: Any) -> Probing[ProcessStats]:
    config = ProcessStatsConfig(**options)
    return Probing(ProcessStats, root, process_stats_config=config)


def tree(packet: TracePacket) -> ProcessTree:
    assert packet.process_tree is not None
    return packet.process_tree


def by_pid(packet: TracePacket) -> dict[int, Stats.Process]:
    assert packet.process_stats is not None
    found: dict[int, Stats.Process] = {}
    for process in packet.process_stats.processes:  # Open files have a message of their own.
        known = found.setdefault(process.pid, process)
        if known is not process:
            known.fds.extend(process.fds)
    return found


def contents(packets: list[TracePacket]) -> list[str]:
    """Return the kind of each packet."""
    return ["tree" if packet.has("process_tree") else "stats" for packet in packets]


def test_session_without_options_writes_nothing(root: Path) -> None:
    assert not probing(root).advance(10_000)


def test_scan_describes_processes_and_threads(root: Path) -> None:
    (packet,) = probing(root, scan_all_processes_on_start=True).take()
    kernel, shop = tree(packet).processes
    assert vars(shop) == {
        "pid": 77,
        "ppid": 1,
        "cmdline": ["/usr/bin/shop", "--port=80"],
        "uid": 1000,
        "is_kthread": False,
    }
    assert kernel.cmdline == ["kthreadd"]
    assert kernel.cmdline_is_comm
    assert kernel.is_kthread
    threads = [(thread.tid, thread.tgid, thread.name) for thread in tree(packet).threads]
    assert threads == [(2, 2, ""), (77, 77, ""), (78, 77, "")]
    assert packet.incremental_state_cleared


def test_scan_has_names_of_threads_and_start_times_if_the_config_asks_for_them(
    root: Path,
) -> None:
    options = {"record_thread_names": True, "record_process_age": True}
    (packet,) = probing(root, scan_all_processes_on_start=True, **options).take()
    names = [(thread.tid, thread.name) for thread in tree(packet).threads]
    assert names == [(2, "kthreadd"), (77, "shop"), (78, "worker")]
    assert [p.process_start_from_boot for p in tree(packet).processes] == [5555 * TICK] * 2


@pytest.mark.parametrize(
    ("comm", "name"), [("io (1)\n", "io (1)"), ("a\\b\n", "of status"), ("a\nb\n", "of status")]
)
def test_names_of_threads_are_those_in_status(root: Path, comm: str, name: str) -> None:
    add_thread(root, 77, 79, "of status")
    write_files(root, {"proc/77/task/79/comm": comm})
    options = {"record_thread_names": True, "scan_all_processes_on_start": True}
    (packet,) = probing(root, **options).take()
    assert [t.name for t in tree(packet).threads if t.tid == 79] == [name]


def test_option_leaves_out_messages_of_main_threads(root: Path) -> None:
    (packet,) = probing(
        root, scan_all_processes_on_start=True, skip_main_thread_message=True
    ).take()
    assert [thread.tid for thread in tree(packet).threads] == [78]


def test_ids_in_inner_namespaces_are_written(root: Path) -> None:
    add_process(root, 90, "inner", "inner", nspid="90\t5\t1")
    add_thread(root, 90, 91, "pool", nspid="91\t6\t2")
    (packet,) = probing(root, scan_all_processes_on_start=True).take()
    assert tree(packet).processes[-1].nspid == [5, 1]
    threads = {thread.tid: thread.nstid for thread in tree(packet).threads}
    assert (threads[90], threads[91]) == ([5, 1], [6, 2])


def test_processes_that_have_ended_are_left_out_even_if_a_thread_has_their_id(root: Path) -> None:
    write_files(root, {"proc/88/status": status(88, "thread", tgid=77)})
    (root / "proc/89").mkdir()
    packets = probing(root, scan_all_processes_on_start=True).take()
    assert [process.pid for process in tree(packets[0]).processes] == [2, 77]


def kernel_stat(pid: int, name: str, flags: int = 0x208040) -> str:
    return f"{pid} ({name}) I 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0\n"


def add_children_of_kthreadd(root: Path, **stats: str) -> None:
    """Write the list of children, and `status` and `stat` of each."""
    pids = {name: int(text.split()[0]) for name, text in stats.items()}
    for name, pid in pids.items():
        add_process(root, pid, f"status of {name}")
        write_files(root, {f"proc/{pid}/stat": stats[name]})
    write_files(root, {"proc/2/task/2/children": "".join(f"{pid} " for pid in pids.values())})


def test_kernel_threads_are_described_by_stat(root: Path) -> None:
    add_children_of_kthreadd(
        root,
        worker=kernel_stat(9, "kworker/0:1 (x)"),
        helper=kernel_stat(10, "modprobe", flags=0x400),
        odd=kernel_stat(11, "a\\b"),
        damaged="12 (x) I 2",
    )
    options = {"record_thread_names": True, "record_process_age": True}
    (packet,) = probing(root, scan_all_processes_on_start=True, **options).take()
    _, worker, *others, _ = tree(packet).processes
    assert vars(worker) == {
        "pid": 9,
        "ppid": 2,
        "cmdline": ["kworker/0:1 (x)"],
        "uid": 1000,  # That of kthreadd.
        "cmdline_is_comm": True,
        "is_kthread": True,
        "process_start_from_boot": 9 * TICK,
    }
    names = [process.cmdline for process in others]
    assert names == [["status of helper"], ["status of odd"], ["status of damaged"]]
    assert [thread.name for thread in tree(packet).threads][1] == "kworker/0:1 (x)"


def test_other_process_2_has_no_kernel_threads(root: Path) -> None:
    add_children_of_kthreadd(root, child=kernel_stat(9, "of stat"))
    add_process(root, 2, "sh", "sh")
    (packet,) = probing(root, scan_all_processes_on_start=True).take()
    assert [process.cmdline for process in tree(packet).processes][1] == ["status of child"]


def test_kernel_threads_of_this_machine_are_described_as_in_their_status() -> None:
    if not Path("/proc/2/task/2/children").exists():
        pytest.skip("this machine shows no children of kthreadd")
    (packet,) = probing(Path("/"), scan_all_processes_on_start=True).take()
    shown = {p.pid: p for p in tree(packet).processes if p.cmdline_is_comm and p.ppid == 2}
    compared = 0
    for pid, process in shown.items():
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue  # It has ended.
        words = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert (words["PPid"], words.get("Kthread", "1")) == ("2", "1")
        assert int(words["Uid"].split()[0]) == process.uid
        # A worker's name changes with its work: "kworker/0:1-events", "kworker/0:1H+kblockd".
        assert re.split("[-+]", words["Name"])[0] == re.split("[-+]", process.cmdline[0])[0]
        compared += 1
    assert compared > 0


def test_old_kernel_has_no_kthread_line(root: Path) -> None:
    text = "Name:\tinit\nState:\tS (sleeping)\nTgid:\t1\nPid:\t1\nPPid:\t0\nUid:\t0\t0\t0\t0\n"
    write_files(root, {"proc/1/status": f"{text}VmSize:\t    4 kB\n"})
    packets = probing(root, scan_all_processes_on_start=True, proc_stats_poll_ms=100).take()
    process = tree(packets[0]).processes[0]
    assert process.pid == 1
    assert not process.has("is_kthread")
    assert by_pid(packets[1])[1].vm_size_kb == 4


def test_poll_writes_memory_of_processes_and_then_their_descriptions(root: Path) -> None:
    packets = probing(root, proc_stats_poll_ms=1000).take()
    assert contents(packets) == ["stats", "tree"]
    ((pid, process),) = by_pid(packets[0]).items()
    assert pid == 77
    assert vars(process) == {
        "pid": 77,
        "vm_size_kb": 5484,
        "vm_rss_kb": 4516,
        "rss_anon_kb": 1432,
        "rss_file_kb": 3084,
        "rss_shmem_kb": 0,
        "vm_swap_kb": 0,
        "vm_locked_kb": 0,
        "vm_hwm_kb": 4600,
        "oom_score_adj": -17,
    }
    assert [each.pid for each in tree(packets[1]).processes] == [77]


def test_poll_writes_what_the_options_add(root: Path) -> None:
    write_files(root, {"proc/77/dmabuf_rss": f"{5 << 20}\n"})
    add_fd(root, 77, 0, "/dev/null")
    add_fd(root, 77, 3, "socket:[5]")
    options = dict.fromkeys(
        (
            "scan_smaps_rollup",
            "record_process_runtime",
            "record_process_dmabuf_rss",
            "resolve_process_fds",
        ),
        True,
    )
    processes = by_pid(probing(root, proc_stats_poll_ms=100, **options).take()[0])
    shop, kernel = processes[77], processes[2]
    assert (shop.smr_rss_kb, shop.smr_pss_kb, shop.smr_swap_pss_kb) == (1756, 203, 5)
    assert (shop.smr_pss_anon_kb, shop.smr_pss_file_kb, shop.smr_pss_shmem_kb) == (116, 87, 0)
    assert shop.dmabuf_rss_kb == 5120
    assert [(each.fd, each.path) for each in shop.fds] == [(0, "/dev/null"), (3, "socket:[5]")]
    for process in (shop, kernel):
        assert process.runtime_user_mode == 300 * TICK
        assert process.runtime_kernel_mode == 40 * TICK
    assert not kernel.has("vm_size_kb")


def test_scan_writes_open_files_and_the_first_poll_only_new_ones(root: Path) -> None:
    add_fd(root, 77, 3, "/tmp/one")
    session = probing(
        root,
        scan_all_processes_on_start=True,
        proc_stats_poll_ms=1000,
        proc_stats_cache_ttl_ms=60_000,
        resolve_process_fds=True,
    )
    packets = session.take()
    assert contents(packets) == ["tree", "stats", "stats"]
    assert [len(by_pid(packet)[77].fds) for packet in packets[1:]] == [1, 0]
    add_fd(root, 77, 3, "/tmp/two")
    add_fd(root, 77, 4, "/tmp/four")
    (packet,) = session.advance(1000)
    assert [each.path for each in by_pid(packet)[77].fds] == ["/tmp/two", "/tmp/four"]


def test_without_a_ttl_all_open_files_are_written_at_each_poll(root: Path) -> None:
    """As by traced_probes, whose cache of open files expires with that of the values."""
    add_fd(root, 77, 3, "/tmp/one")
    session = probing(root, proc_stats_poll_ms=1000, resolve_process_fds=True)
    polls = [session.take()[0], *(session.advance(1000)[0] for _ in range(2))]
    assert [len(by_pid(packet)[77].fds) for packet in polls] == [1, 1, 1]


def test_unchanged_values_are_written_again_when_the_cache_expires(root: Path) -> None:
    session = probing(root, proc_stats_poll_ms=100, proc_stats_cache_ttl_ms=350)
    assert contents(session.take()) == ["stats", "tree"]
    assert [len(session.advance(100)) for _ in range(7)] == [0, 0, 1, 0, 0, 1, 0]


def test_only_changed_values_are_written(root: Path) -> None:
    session = probing(root, proc_stats_poll_ms=100, proc_stats_cache_ttl_ms=60_000)
    session.take()
    path = root / "proc/77/status"
    path.write_text(path.read_text().replace("4516 kB", "4600 kB"))
    (packet,) = session.advance(100)
    changed = by_pid(packet)[77]
    assert (changed.pid, changed.vm_rss_kb) == (77, 4600)
    assert not changed.has("vm_size_kb")


def test_by_default_everything_is_written_at_each_poll(root: Path) -> None:
    session = probing(root, proc_stats_poll_ms=1)  # The shortest poll is 100 ms.
    assert contents(session.take()) == ["stats", "tree"]
    assert contents(session.advance(1000)) == ["stats"] * 10


def test_new_process_with_the_id_of_an_ended_one_is_described(root: Path) -> None:
    session = probing(root, scan_all_processes_on_start=True, proc_stats_poll_ms=100)
    session.take()
    shutil.rmtree(root / "proc/77")
    assert not session.advance(100)
    add_process(root, 77, "other", "other")
    packets = session.advance(100)
    assert contents(packets) == ["stats", "tree"]
    assert tree(packets[1]).processes[0].cmdline == ["other"]


def test_cleared_incremental_state_is_written_again(root: Path) -> None:
    session = probing(root, proc_stats_poll_ms=100, proc_stats_cache_ttl_ms=60_000)
    first = session.take()
    session.source.on_clear_incremental_state()
    again = session.advance(100)
    for packets in (first, again):
        assert contents(packets) == ["stats", "tree"]
        assert [packet.incremental_state_cleared for packet in packets] == [True, False]


def test_stopped_session_polls_no_more(root: Path) -> None:
    session = probing(root, proc_stats_poll_ms=100)
    session.source.on_stop()
    session.take()
    assert not session.advance(1000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "77",
        "77 (sh) S 1 2",
        "77 (sh) " + "x " * 30,
        "77 (sh) " + "9" * 5000 + " 1" * 30,
    ],
)
def test_process_with_a_damaged_stat_is_described(root: Path, text: str) -> None:
    write_files(root, {"proc/77/stat": text})
    options = {"scan_all_processes_on_start": True, "record_process_age": True}
    (packet,) = probing(root, **options).take()
    shop = tree(packet).processes[-1]
    assert shop.process_start_from_boot in (0, TICK)


@pytest.mark.parametrize("name", ["status", "cmdline", "stat", "smaps_rollup", "oom_score_adj"])
@given(garbage=st.binary())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_parsed_without_an_error(root: Path, name: str, garbage: bytes) -> None:
    path = root / "proc/77" / name
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = garbage.join(lines[:3]) + b"".join(lines[3:])
    (root / "proc/78").mkdir(exist_ok=True)
    for file in (root / "proc/77").iterdir():
        if file.is_file():
            copy = root / "proc/78" / file.name
            copy.write_bytes(damaged if file.name == name else file.read_bytes())
    options = dict.fromkeys(
        ("scan_all_processes_on_start", "record_process_age", "record_process_runtime"), True
    )
    for packet in probing(root, proc_stats_poll_ms=100, scan_smaps_rollup=True, **options).take():
        packet.encode()
