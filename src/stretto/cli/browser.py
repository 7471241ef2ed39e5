"""The user's browser, if there is one that can show the Perfetto UI."""

from __future__ import annotations

import os
import webbrowser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def find_browser() -> Callable[[str], bool] | None:
    """Return a function that opens an address; None if no browser was found.

    $BROWSER has precedence. Terminal browsers, which `webbrowser` finds on machines without a
    screen, are ignored: they can't run the UI, and would use the terminal.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    in_terminal = type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ
    return None if in_terminal else browser.open
