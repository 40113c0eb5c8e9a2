"""The walk through the README: its first command is found, taken apart, and each step is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.walkthrough import HOME, first_command, run

README = HOME / "README.md"


@pytest.mark.skipif(not README.exists(), reason="an installation has no README")
def test_the_first_command_makes_an_environment_installs_and_certifies() -> None:
    venv, install, certify = first_command(README.read_text(encoding="utf-8"))
    assert venv == "python3 -m venv .venv"
    assert install == ".venv/bin/pip install ."
    assert certify.startswith(".venv/bin/shareproof broker --target kafka:")


def test_a_readme_without_a_command_is_refused() -> None:
    with pytest.raises(ValueError, match="shows no command"):
        first_command("# nothing")


def test_a_step_is_told_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    assert run("echo path=$PYTHONPATH; exit 3", tmp_path) == (3, "path=\n")
    assert capsys.readouterr().out.startswith("  3 ")
