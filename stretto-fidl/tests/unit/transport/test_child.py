from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fidl_support.child import accept_from
from stretto_fidl.transport import Listener


def test_accept_fails_if_the_client_process_ends_before_it_connects(tmp_path: Path) -> None:
    with Listener(str(tmp_path / "sock")) as listener:
        command = [sys.executable, "-c", "raise SystemExit(3)"]
        with (
            subprocess.Popen(command) as child,
            pytest.raises(AssertionError, match="ended with 3 before it connected"),
        ):
            accept_from(listener, child)
