"""The files of `linux.process_stats`: functions that convert a process's files in /proc.

Lines that aren't of the kernel's form are left out, and numbers beyond a field's range are cut.
Source: proc(5).
"""

from __future__ import annotations

import os
import re

from stretto.protos.trace import ProcessTree

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
MAX_PID = 2**31 - 1
NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")

MEMORY = {
    b"VmSize": "vm_size_kb",
    b"VmRSS": "vm_rss_kb",
    b"RssAnon": "rss_anon_kb",
    b"RssFile": "rss_file_kb",
    b"RssShmem": "rss_shmem_kb",
    b"VmSwap": "vm_swap_kb",
    b"VmLck": "vm_locked_kb",
    b"VmHWM": "vm_hwm_kb",
    b"Rss": "smr_rss_kb",
    b"Pss": "smr_pss_kb",
    b"Pss_Anon": "smr_pss_anon_kb",
    b"Pss_File": "smr_pss_file_kb",
    b"Pss_Shmem": "smr_pss_shmem_kb",
    b"SwapPss": "smr_swap_pss_kb",
}
"""Fields of ProcessStats by their names in `status` and `smaps_rollup`."""

_MEMORY = re.compile(rb"^(%s):\s*(\d{1,20}) kB$" % b"|".join(MEMORY), re.M)
_STATUS = re.compile(rb"^(Name|Tgid|PPid|Uid|NSpid|Kthread):\t?(.*)$", re.M)
_PID = re.compile(rb"\d{1,9}")
_U32 = re.compile(rb"\d{1,10}")
_NUMBER = re.compile(rb"(-?\d{1,18})\s*")


def memory(text: bytes) -> dict[str, int]:
    """Return the memory sizes of `status` and `smaps_rollup`, in kB."""
    return {MEMORY[name]: min(int(size), U64_MAX) for name, size in _MEMORY.findall(text)}


def number(text: bytes) -> int | None:
    """Return the number that is a file's only content; None if there is none."""
    found = _NUMBER.fullmatch(text)
    return int(found[1]) if found else None


def times(stat: bytes) -> list[int]:
    """Return user time, kernel time, and start since boot, in ns; nothing if `stat` is damaged.

    The name of the process, in parentheses, may contain blanks and parentheses.
    """
    fields = stat.rpartition(b")")[2].split()
    chosen = [fields[11], fields[12], fields[19]] if len(fields) > 19 else []
    if not all(field.isdigit() and len(field) <= 20 for field in chosen):
        return []
    return [min(int(field) * NS_PER_TICK, U64_MAX) for field in chosen]


class Status:
    """The entries of /proc/PID/status that describe a process or thread."""

    def __init__(self, text: bytes) -> None:
        self._entries: dict[bytes, bytes] = dict(_STATUS.findall(text))
        self.name = self._entries.get(b"Name", b"").decode(errors="replace")
        self.tgid = min(self._number(b"Tgid"), MAX_PID)
        self.namespaced = [int(word) for word in _PID.findall(self._entries.get(b"NSpid", b""))][1:]
        """The ids in the inner namespaces; most processes have none."""

    def _number(self, name: bytes) -> int:
        found = _U32.match(self._entries.get(name, b""))
        return min(int(found[0]), U32_MAX) if found else 0

    def process(self, cmdline: bytes, start_ns: int | None) -> ProcessTree.Process:
        """Return the description of this process.

        Args:
            cmdline: The contents of `cmdline`; empty for kernel threads and zombies.
            start_ns: The time from boot to the start of the process; None if unknown.
        """
        words = [word.decode(errors="replace") for word in cmdline.split(b"\0") if word]
        process = ProcessTree.Process(
            pid=self.tgid,
            ppid=min(self._number(b"PPid"), MAX_PID),
            cmdline=words if cmdline else [self.name],
            uid=(self._number(b"Uid") + 2**31) % 2**32 - 2**31,  # The field is signed.
            nspid=self.namespaced,
            process_start_from_boot=start_ns,
        )
        if not cmdline:
            process.cmdline_is_comm = True
        if b"Kthread" in self._entries:  # since Linux 6.4
            process.is_kthread = self._number(b"Kthread") == 1
        return process

    def thread(self, tid: int, *, named: bool) -> ProcessTree.Thread:
        """Return the description of this thread."""
        name = self.name if named else None
        return ProcessTree.Thread(tid=tid, tgid=self.tgid, name=name, nstid=self.namespaced)
