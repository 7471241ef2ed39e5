from __future__ import annotations

import webbrowser

import pytest

from stretto.cli.browser import find_browser


def found(monkeypatch: pytest.MonkeyPatch, browser: webbrowser.BaseBrowser) -> bool:
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    return find_browser() is not None


def test_a_browser_with_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    assert found(monkeypatch, webbrowser.BackgroundBrowser("xdg-open"))
    assert found(monkeypatch, webbrowser.Chrome("chromium"))


def test_a_browser_of_the_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    assert not found(monkeypatch, webbrowser.GenericBrowser("lynx"))


def test_the_users_choice_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "lynx")
    assert found(monkeypatch, webbrowser.GenericBrowser("lynx"))


def test_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    def get() -> webbrowser.BaseBrowser:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", get)
    assert find_browser() is None
