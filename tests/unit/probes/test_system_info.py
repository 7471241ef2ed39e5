"""`linux.system_info`, on files of Linux 6.18 (the folder `machine`) and of an ARM machine."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stretto.probes.system_info import SystemInfo, cpu_fields, interrupts, number
from stretto.protos.config import SystemInfoConfig
from stretto.protos.trace import CpuInfo
from tests.support.probing import Probing, write_files

MACHINE = Path(__file__).parent / "machine"
ARM = """\
Processor\t: AArch64 Processor rev 13 (aarch64)

processor\t: 0
Features\t: fp asimd
CPU implementer\t: 0x51
CPU architecture: 8
CPU variant\t: 0xd
CPU part\t: 0x805
CPU revision\t: 14

processor\t: 1
CPU implementer\t: 0x41

Hardware\t: Qualcomm Technologies, Inc SM8150
"""
INTERRUPTS = """\
           CPU0       CPU1
  8:          0          1   IO-APIC   8-edge      rtc0
 24:          1          0  PCI-MSI-0000:00:01.0   0-edge  virtio0-config
 31:       5555         66     GICv3  31 Level     arch_timer, other
 90:          7          0  msmgpio   5  Edge
 99:          1          0
NMI:          0          0   Non-maskable interrupts
"""


def cpus(root: Path) -> list[CpuInfo.Cpu]:
    (packet,) = Probing(SystemInfo, root).take()
    assert packet.cpu_info is not None
    return packet.cpu_info.cpus


def test_cpus_of_x86_have_their_model_and_capacity() -> None:
    first, second = cpus(MACHINE)
    assert first == second
    assert (first.processor, first.capacity) == ("AMD EPYC", 1024)
    assert not first.has("arm_identifier")


def test_arm_cpus_have_one_name_but_own_identifiers_and_frequencies(
    tmp_path: Path,
) -> None:
    folder = "sys/devices/system/cpu/cpu0/cpufreq"
    write_files(
        tmp_path,
        {
            "proc/cpuinfo": ARM,
            f"{folder}/scaling_available_frequencies": "300000 1785600 \n",
            f"{folder}/scaling_boost_frequencies": "2841600\n",
        },
    )
    first, second = cpus(tmp_path)
    assert first.processor == second.processor == "AArch64 Processor rev 13 (aarch64)"
    assert first.frequencies == [300_000, 1_785_600, 2_841_600]
    assert first.arm_identifier is not None
    assert list(vars(first.arm_identifier).values()) == [0x51, 8, 0xD, 0x805, 14]
    assert second.arm_identifier is not None
    assert (second.arm_identifier.implementer, second.arm_identifier.part) == (0x41, 0)


def test_interrupts_are_named_by_the_words_behind_their_trigger() -> None:
    assert dict(interrupts(INTERRUPTS)) == {
        8: "rtc0",
        24: "virtio0-config",
        31: "arch_timer, other",
        90: "",
        99: "0",
    }


def test_interrupts_are_written_if_the_config_asks_for_them() -> None:
    config = SystemInfoConfig(irq_names=True)
    _, packet = Probing(SystemInfo, MACHINE, system_info_config=config).take()
    assert packet.interrupt_info is not None
    names = {row.irq_id: row.name for row in packet.interrupt_info.irq_mapping}
    assert names[26] == "ttyS0"
    assert len(names) == 19


def test_machine_without_files_has_no_cpus(tmp_path: Path) -> None:
    assert cpus(tmp_path) == []


@given(st.text())
def test_garbage_is_parsed_without_an_error(text: str) -> None:
    list(cpu_fields(text))
    list(interrupts(text))
    assert 0 <= number(text) < 2**32


@given(st.text(alphabet="0123456789abcdefx: \nprocessor-Level", max_size=200))
def test_characters_of_kernel_files_are_parsed_without_an_error(text: str) -> None:
    list(cpu_fields(text))
    assert all(0 <= irq < 2**31 for irq, _ in interrupts(text))
    assert 0 <= number(text) < 2**32
