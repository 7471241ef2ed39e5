"""`linux.system_info`: the CPUs of the machine, and the names of its interrupts; written once."""

from __future__ import annotations

import re

from stretto.probes.probe import Probe
from stretto.protos.config import SystemInfoConfig
from stretto.protos.trace import CpuInfo, InterruptInfo, TracePacket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CPUS = "sys/devices/system/cpu"
ARM_FIELDS = {
    "CPU implementer": "implementer",
    "CPU architecture": "architecture",
    "CPU variant": "variant",
    "CPU part": "part",
    "CPU revision": "revision",
}
U32_MAX = 2**32 - 1
_NUMBERED = re.compile(r" *([0-9]{1,9}): *(.*)")
_TRIGGER = re.compile(r"Edge|Level|.*-(?:edge|fasteoi|level)")
_NUMBER = {10: re.compile(r"[0-9]{1,10}"), 16: re.compile(r"0x[0-9a-fA-F]{1,8}")}


def cpu_fields(cpuinfo: str) -> Iterator[dict[str, str]]:
    """Return the fields of each CPU in /proc/cpuinfo, by name.

    A field that comes before the first CPU, or after an empty line behind the last one, belongs
    to all CPUs: ARM kernels write the processor's name there.
    """
    shared: dict[str, str] = {}
    cpus: list[dict[str, str]] = []
    for block in cpuinfo.split("\n\n"):
        lines = [line.partition(":") for line in block.splitlines()]
        fields = {name.strip(): value.strip() for name, _, value in lines}
        if "processor" in fields:
            cpus.append(fields)
        else:
            shared |= fields
    return (shared | fields for fields in cpus)


def number(text: str) -> int:
    """Return the decimal or hexadecimal number in a text, at most 2^32 - 1; 0 if there is none."""
    base = 16 if text.startswith("0x") else 10
    return min(int(text, base), U32_MAX) if _NUMBER[base].fullmatch(text) else 0


def interrupts(text: str) -> Iterator[tuple[int, str]]:
    """Return the number and name of each numbered interrupt in /proc/interrupts.

    The name is what follows the trigger, such as `5-edge` or `Level`; the last word if there is no
    trigger.
    """
    for line in text.splitlines():
        if found := _NUMBERED.fullmatch(line):
            words = found[2].split()
            triggers = [i for i, word in enumerate(words) if _TRIGGER.fullmatch(word)]
            name = words[triggers[-1] + 1 :] if triggers else words[-1:]
            yield int(found[1]), " ".join(name)


class SystemInfo(Probe):
    """Describes the machine at the start of a session."""

    name = "linux.system_info"

    def start(self) -> None:
        self.write(TracePacket(timestamp=self.machine.now_ns(), cpu_info=self._cpus()))
        config = self.config.system_info_config or SystemInfoConfig()
        if config.irq_names:
            text = self.machine.read("proc/interrupts").decode(errors="replace")
            info = InterruptInfo(
                irq_mapping=[
                    InterruptInfo.InterruptMapping(irq_id=number, name=name)
                    for number, name in interrupts(text)
                ]
            )
            self.write(TracePacket(timestamp=self.machine.now_ns(), interrupt_info=info))

    def _cpus(self) -> CpuInfo:
        text = self.machine.read("proc/cpuinfo").decode(errors="replace")
        return CpuInfo(
            cpus=[self._cpu(index, fields) for index, fields in enumerate(cpu_fields(text))]
        )

    def _cpu(self, index: int, fields: dict[str, str]) -> CpuInfo.Cpu:
        folder = f"{CPUS}/cpu{index}"
        cpu = CpuInfo.Cpu(processor=fields.get("Processor") or fields.get("model name", "unknown"))
        for name in ("scaling_available_frequencies", "scaling_boost_frequencies"):
            words = self.machine.read(f"{folder}/cpufreq/{name}").decode(errors="replace").split()
            cpu.frequencies += [number(word) for word in words]
        if capacity := self.machine.read(f"{folder}/cpu_capacity"):
            cpu.capacity = number(capacity.decode(errors="replace").strip())
        if "CPU implementer" in fields:
            values = {ours: number(fields.get(name, "")) for name, ours in ARM_FIELDS.items()}
            cpu.arm_identifier = CpuInfo.ArmCpuIdentifier(**values)
        return cpu
