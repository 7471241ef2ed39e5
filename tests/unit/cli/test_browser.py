from __future__ import annotations

import webbrowser

import pytest

from stretto.cli.browser import find_browser


def found(monkeypatch: pytest.MonkeyPatch, browser: webbrowser.BaseBrowser) -> bool:
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    return find_browser() is not None


def test_graphical_browser_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    assert found(monkeypatch, webbrowser.BackgroundBrowser("xdg-open"))
    assert found(monkeypatch, webbrowser.Chrome("chromium"))


def test_browser_of_the_terminal_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    assert not found(monkeypatch, webbrowser.GenericBrowser("lynx"))


def test_browser_of_the_terminal_is_used_if_chosen_by_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BROWSER", "lynx")
    assert found(monkeypatch, webbrowser.GenericBrowser("lynx"))


def test_missing_browser_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def get() -> webbrowser.BaseBrowser:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", get)
    assert find_browser() is None
