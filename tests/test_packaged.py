"""What we hand out holds everything; see tools/packaged.py, which also runs it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fixtures.targets import optional
from tools.packaged import HOME, build, lost, tracked, unwanted

LOCK = HOME / "lock.txt"


@pytest.mark.skipif(not (HOME / ".git").exists(), reason="only git knows which files are ours")
def test_wheel_and_sdist_hold_every_file_of_the_rooms(tmp_path: Path) -> None:
    if lacks := optional.missing("git"):
        pytest.skip(lacks)
    built = build(tmp_path)

    assert lost(built, tracked()) == []
    assert unwanted(built) == []
    assert lost(built, ["spec/forgotten.toml"]) == [
        "spec/forgotten.toml is not in the wheel",
        "spec/forgotten.toml is not in the sdist",
    ]


@pytest.mark.skipif(not LOCK.exists(), reason="an installation has no lock")
def test_the_lock_agrees_with_the_pins() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    pins = [
        Requirement(line) for line in [*project["dependencies"], *(p for e in extras for p in e)]
    ]
    locked = {
        canonicalize_name(line.split("==")[0]): line.split("==")[1].split(" ")[0]
        for line in LOCK.read_text().splitlines()
        if "==" in line
    }

    for pin in pins:
        if canonicalize_name(pin.name) != "shareproof":
            assert str(pin.specifier) == f"=={locked[canonicalize_name(pin.name)]}", pin.name
