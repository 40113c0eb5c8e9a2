"""``pytest -p shareproof.testing``: the tutorial's tests, and what becomes of a wrong consumer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.adapters.clients import confluent_python
from fixtures.adapters.versions import NEWEST
from tests.fake import ROOT

ORDERS = ROOT / "docs" / "tutorials" / "orders"
PAGE = ROOT / "docs" / "tutorials" / "test-your-application.md"

pytestmark = [
    pytest.mark.skipif(not ORDERS.exists(), reason="an installation has no documents"),
    pytest.mark.timeout(120),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ORDERS, tmp_path / "orders"))


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    venv = confluent_python(NEWEST["confluent"]).parents[1]
    (packages,) = venv.glob("lib/python3*/site-packages")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


OURS = ("-p", "shareproof.testing", "--share-target", "reference")


def test_the_tutorial_is_green(project: Path) -> None:
    done = run(project, *OURS)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_a_wrong_consumer_fails_the_tutorial(project: Path) -> None:
    orders = project / "orders.py"
    wrong = orders.read_text(encoding="utf-8").replace(
        "AcknowledgeType.REJECT", "AcknowledgeType.ACCEPT"
    )
    orders.write_text(wrong, encoding="utf-8")
    done = run(project, *OURS, "-k", "rejected")
    assert "assert ([0, 1, 2], []) == ([0, 2], [1])" in done.stdout
    tests = project / "test_orders.py"
    text = tests.read_text(encoding="utf-8").replace("orders.wait()", "orders.wait(within=0.5)")
    tests.write_text(text, encoding="utf-8")
    orders.write_text("import time; time.sleep(60)", encoding="utf-8")
    done = run(project, *OURS, "-k", "rejected")
    assert "finished records within 0.5 s; unfinished offsets [0, 1, 2]" in done.stdout


def test_nothing_is_registered_unless_asked_for(project: Path) -> None:
    assert "share_cluster" not in run(project, "--fixtures").stdout
    assert "share_cluster" in run(project, "-p", "shareproof.testing", "--fixtures").stdout
    assert "unrecognized arguments: --share-target" in run(project, *OURS[2:]).stderr


def test_packages_of_our_names_are_refused(project: Path) -> None:
    (project / "fixtures").mkdir()
    (project / "fixtures" / "__init__.py").touch()
    done = run(project, *OURS)
    assert "imports packages called fixtures, as you do" in done.stderr
    assert done.returncode == pytest.ExitCode.USAGE_ERROR


def test_the_page_shows_the_files() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for file in ORDERS.glob("*.py"):
        code = file.read_text(encoding="utf-8").partition('"""\n')[2].strip()
        shown = "\n".join(f"    {line}".rstrip() for line in code.splitlines())
        assert shown in page, file.name
