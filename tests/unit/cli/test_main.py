from __future__ import annotations

import subprocess
import sys

import pytest

import stretto
from stretto.cli.main import main
from stretto.cli.verbs import VERBS, added_verbs


def test_help_names_every_verb(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"stretto {verb}" in out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys, verb):
    try:
        status = main([verb, "--help"])
    except SystemExit as end:  # argparse exits after it has printed the help.
        status = end.code
    assert status == 0
    assert f"stretto {verb}" in capsys.readouterr().out


def test_missing_verb_prints_help_and_fails(capsys):
    assert main([]) == 2
    assert "stretto record app.py" in capsys.readouterr().out


def test_unknown_verb_is_an_error_that_lists_the_verbs(capsys):
    assert main(["rekord"]) == 2
    assert capsys.readouterr().err == (
        "stretto: There is no verb 'rekord': choose from "
        + ", ".join([*VERBS, *sorted(added_verbs().keys() | {"fidl"})])
        + ". Did you mean record?\n"
    )


def test_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"stretto {stretto.__version__}\n"


class TestMissingNativePart:
    @pytest.fixture(autouse=True)
    def verb(self, monkeypatch):
        monkeypatch.setitem(VERBS, "record", ("stretto.cli.no_such_module", "fails to import"))

    def test_verb_without_its_native_part_prints_how_to_install_it(self, capsys, monkeypatch):
        monkeypatch.setattr(stretto, "available", lambda: False)
        assert main(["record", "app.py"]) == 1
        err = capsys.readouterr().err
        assert err.startswith("stretto: record: this is Stretto without its native part")
        assert "Install a wheel" in err

    def test_import_error_with_the_native_part_present_is_raised(self):
        with pytest.raises(ImportError, match="no_such_module"):
            main(["record", "app.py"])


def test_command_excludes_its_imported_modules_from_garbage_collections():
    program = """
import gc, sys
from stretto.cli import main
def run(arguments):
    print(gc.isenabled(), gc.get_freeze_count() > 1000)
    return 0
main.load_verb = lambda name: run
sys.exit(main.main(*{arguments}))
"""
    for arguments, expected in (((), "True True"), ((["view"],), "True False")):
        done = subprocess.run(
            [sys.executable, "-c", program.format(arguments=arguments), "view"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == expected, done.stderr
