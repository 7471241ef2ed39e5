"""The programs that `bench/samplers.py` samples.

    python _sampled.py work BLOCKS      prints the CPU time of so many blocks of work
    python _sampled.py blocks           the same for each number that it reads
    python _sampled.py hostile          two chains of calls, in turns, as fast as possible

A block consists of calls of `half`, `third` and `fifth`, which execute the same loop: 50, 30 and 20
per cent of its iterations. The CPU time of each function is printed, in seconds.
"""

from __future__ import annotations

import sys
import time
from itertools import repeat

LOOPS = 40
CALLS = 300


def half() -> None:
    for _ in repeat(None, 50 * LOOPS):
        pass


def third() -> None:
    for _ in repeat(None, 30 * LOOPS):
        pass


def fifth() -> None:
    for _ in repeat(None, 20 * LOOPS):
        pass


def work(blocks: int) -> str:
    """Do the work; return the CPU time of each function in seconds, separated by blanks."""
    functions = half, third, fifth
    used = [0.0, 0.0, 0.0]
    for _ in range(blocks):
        for index, function in enumerate(functions):
            begin = time.process_time()
            for _ in repeat(None, CALLS):
                function()
            used[index] += time.process_time() - begin
    return " ".join(map(str, used))


def left_one() -> None:
    left_two()


def left_two() -> None:
    left_three()


def left_three() -> None:
    pass


def right_one() -> None:
    right_two()


def right_two() -> None:
    right_three()


def right_three() -> None:
    pass


def hostile() -> None:
    """Call both chains until this process is killed."""
    while True:
        left_one()
        right_one()


def main() -> None:
    mode = sys.argv[1]
    print("ready", flush=True)
    if mode == "work":
        print(work(int(sys.argv[2])), flush=True)
    elif mode == "blocks":
        for line in sys.stdin:
            print(work(int(line)), flush=True)
    else:
        hostile()


if __name__ == "__main__":
    main()
