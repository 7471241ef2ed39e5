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


def test_text_browser_is_not_used_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    assert not found(monkeypatch, webbrowser.GenericBrowser("lynx"))


def test_text_browser_is_used_if_chosen_by_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BROWSER", "lynx")
    assert found(monkeypatch, webbrowser.GenericBrowser("lynx"))


def test_lookup_without_a_browser_returns_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def get() -> webbrowser.BaseBrowser:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", get)
    assert find_browser() is None
