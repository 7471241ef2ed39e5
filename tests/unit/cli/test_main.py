from __future__ import annotations

import pytest

import stretto
from stretto.cli.main import main
from stretto.cli.verbs import VERBS, added_verbs


def test_help_names_every_verb(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"stretto {verb}" in out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(capsys, verb):
    try:
        status = main([verb, "--help"])
    except SystemExit as end:  # argparse's way
        status = end.code
    assert status == 0
    assert f"stretto {verb}" in capsys.readouterr().out


def test_without_a_verb_it_helps_and_fails(capsys):
    assert main([]) == 2
    assert "stretto record app.py" in capsys.readouterr().out


def test_unknown_verb(capsys):
    assert main(["rekord"]) == 2
    assert capsys.readouterr().err == (
        "stretto: There is no verb 'rekord': choose from "
        + ", ".join([*VERBS, *sorted(added_verbs().keys() | {"fidl"})])
        + ".\n"
    )


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"stretto {stretto.__version__}\n"


class TestWithoutTheNativePart:
    @pytest.fixture(autouse=True)
    def verb(self, monkeypatch):
        monkeypatch.setitem(VERBS, "record", ("stretto.cli.no_such_module", "fails to import"))

    def test_it_is_said(self, capsys, monkeypatch):
        monkeypatch.setattr(stretto, "available", lambda: False)
        assert main(["record", "app.py"]) == 1
        said = capsys.readouterr().err
        assert said.startswith("stretto: record: this is Stretto without its native part")
        assert "Install a wheel" in said

    def test_another_error_is_not_covered_up(self):
        with pytest.raises(ImportError, match="no_such_module"):
            main(["record", "app.py"])
