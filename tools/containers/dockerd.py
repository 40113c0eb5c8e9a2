"""A Docker engine for one command, where none runs.

``dockerd`` runs in process and mount namespaces of its own, which end with us: the kernel then ends
all that is inside, and no mount was ever seen outside. It touches no packet filter: containers meet
on bridges, which need none, and processes of the engine pass on the ports that they publish. What
the kernel does not take back, directories and bridges, the next start removes.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from fixtures.machine.reaper import end_with_parent
from fixtures.targets.container.engine import HOST_VARIABLE, answers
from spec.verdict import EnvironmentFault

PREFIX = "shareproof-engine-"
"""What the directories of private engines begin with; the id of their process follows."""

_STARTS_WITHIN = 30.0
_ENDS_WITHIN = 15.0
_GROUPS = Path("/sys/fs/cgroup")
_LINKS = Path("/sys/class/net")


def lacking() -> str:
    needed = ("dockerd", "unshare", "ip")
    able = sys.platform == "linux" and os.geteuid() == 0 and all(map(shutil.which, needed))
    try:
        return "" if answers() or able else "a container engine, or docker.io and root to start one"
    except EnvironmentFault as fault:
        return str(fault)


@contextlib.contextmanager
def engine() -> Iterator[None]:
    """Have ``DOCKER_HOST`` name an engine: the user's, or one that ends with the block.

    EnvironmentFault where there is none, and none can be started.
    """
    if why := lacking():
        raise EnvironmentFault(f"There is no container engine here: it takes {why}.")
    if answers():
        yield
        return
    sweep()
    directory = Path(tempfile.gettempdir(), f"{PREFIX}{os.getpid()}")
    directory.mkdir()
    bridges = "\n".join(link.name for link in _LINKS.iterdir())
    (directory / "links").write_text(bridges, encoding="utf-8")
    running = _start(directory)
    os.environ[HOST_VARIABLE] = f"unix://{directory / 'docker.sock'}"
    try:
        _wait_for(running, directory)
        yield
    finally:
        del os.environ[HOST_VARIABLE]
        _end(running)
        _clear(directory)


def _start(directory: Path) -> subprocess.Popen[bytes]:
    paths = {"data-root": "data", "exec-root": "exec", "pidfile": "docker.pid"}
    command = [
        *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("dockerd", f"--host=unix://{directory / 'docker.sock'}"),
        *(f"--{name}={directory / file}" for name, file in paths.items()),
        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
        *("--ip-forward=false", "--ip-masq=false", "--storage-driver=overlay2"),
        *(f"--cgroup-parent=/shareproof-{os.getpid()}", "--log-level=warn"),
    ]
    with (directory / "engine.log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - one call to the kernel
        )


def _wait_for(running: subprocess.Popen[bytes], directory: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while running.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(EnvironmentFault):
            if answers():
                return
        time.sleep(0.05)
    said = (directory / "engine.log").read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(said) if line.strip()), "it said nothing")
    raise EnvironmentFault(f"A private container engine did not start: {last}")


def _end(running: subprocess.Popen[bytes]) -> None:
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    with contextlib.suppress(OSError):
        for child in children.read_text(encoding="utf-8").split():
            os.kill(int(child), signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(_ENDS_WITHIN)
    running.kill()
    running.wait()
    time.sleep(0.05)  # until the kernel has let go of what was mounted inside


def sweep() -> None:
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = directory.name.removeprefix(PREFIX)
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            _clear(directory)


def _clear(directory: Path) -> None:
    """Remove the traces of an engine that has ended: bridges that were not there before it, too."""
    with contextlib.suppress(OSError):
        before = (directory / "links").read_text(encoding="utf-8").split()
        for link in _LINKS.glob("br-*"):
            if link.name not in before:
                subprocess.run(["ip", "link", "delete", link.name], check=False)
    name = f"shareproof-{directory.name.removeprefix(PREFIX)}"
    for group in (_GROUPS / name, *_GROUPS.glob(f"*/{name}")):
        for folder in (*sorted(group.rglob("*/"), reverse=True), group):
            with contextlib.suppress(OSError):
                folder.rmdir()
    shutil.rmtree(directory, ignore_errors=True)
