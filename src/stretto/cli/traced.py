"""The verb `traced`: says what there is of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = """\
usage: stretto traced

The tracing service of a machine, as a daemon between all its producers and consumers:

  PERFETTO_PRODUCER_SOCK_NAME   where producers will connect   (/tmp/perfetto-producer)
  PERFETTO_CONSUMER_SOCK_NAME   where consumers will connect   (/tmp/perfetto-consumer)

The consumer's socket is not part of this version, so the daemon doesn't start yet. One program
and all its children are recorded without a daemon:

  stretto record app.py
"""


def run(arguments: Sequence[str]) -> int:
    """`stretto traced`.

    Raises:
        CommandError: unless help was asked for.
    """
    if any(word in ("-h", "--help") for word in arguments):
        print(HELP, end="")
        return 0
    raise CommandError(
        "traced: this version has no consumer socket, so the daemon can't be used: "
        "record a program with `stretto record`."
    )
