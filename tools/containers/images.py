"""Images made of nothing but files of this machine, where there is no registry.

``local/kafka:VERSION`` has a Java runtime cut to size, the C library that it was linked with, a
busybox for a shell, and the jars of the release, laid out as those of ``apache/kafka`` are. They
are kept in the cache as archives of files, and an engine imports them.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import docker.errors

from fixtures.interface.names import release_line
from fixtures.machine.cache import cache_root, locked
from fixtures.machine.java import Java, find_java
from fixtures.machine.maven import kafka_release
from fixtures.targets.container.engine import LOCAL
from fixtures.targets.container.target import OURS as TOXIPROXY
from fixtures.toxiproxy import find_server
from spec.verdict import EnvironmentFault

__all__ = ["KAFKA", "TOXIPROXY", "RootFileSystem", "linked", "provide"]

KAFKA = f"{LOCAL}kafka"

_HERE = Path(__file__).parent
_ENTRY, _LOGGING = _HERE / "start-broker.sh", _HERE / "log4j2.yaml"
_PORTS = ("EXPOSE 9092", "EXPOSE 9093", "EXPOSE 9094")
_TIMEOUT = 300
_MODULES = "java.se,jdk.crypto.ec,jdk.management,jdk.security.auth,jdk.unsupported,jdk.zipfs"
_BESIDES = ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1")
"""What libraries inside jars are linked with."""
_ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_log = logging.getLogger("shareproof.targets")


def provide(client: Any, image: str) -> None:
    """See to it that the engine has one of our own images.

    Raises:
        EnvironmentFault: it cannot be made; the message says why.
    """
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        version = image.partition(":")[2]
        if image == TOXIPROXY:
            server = find_server()
            archive = _archived(
                f"toxiproxy-{server.stat().st_size}", lambda to: _toxiproxy(server, to)
            )
            _import(client, image, archive, 'ENTRYPOINT ["/toxiproxy", "-host=0.0.0.0"]')
        else:
            ours = hashlib.sha256(_ENTRY.read_bytes() + _LOGGING.read_bytes()).hexdigest()[:8]
            name = f"kafka-{version}-{find_java().identity}-{ours}"
            archive = _archived(name, lambda to: _kafka(version, to))
            _import(client, image, archive, 'CMD ["/etc/kafka/docker/run"]', *_PORTS)


def _import(client: Any, image: str, archive: Path, *changes: str) -> None:
    name, _, tag = image.partition(":")
    client.api.import_image_from_file(str(archive), repository=name, tag=tag, changes=list(changes))
    client.images.get(image)


def _archived(name: str, make: Callable[[Path], None]) -> Path:
    archive = cache_root() / "images" / f"{name}.tar"
    if not archive.exists():
        with locked("images"):
            archive.parent.mkdir(exist_ok=True)
            if not archive.exists():
                _log.info("making the image %s, once", name)
                draft = archive.with_suffix(".draft")
                make(draft)
                draft.replace(archive)
    return archive


def _toxiproxy(server: Path, archive: Path) -> None:
    with RootFileSystem(archive) as root:
        root.program("toxiproxy", server)


def _kafka(version: str, archive: Path) -> None:
    release_line(version)
    with (
        tempfile.TemporaryDirectory(prefix="shareproof-image-") as work,
        RootFileSystem(archive) as root,
    ):
        root.java(find_java(), Path(work))
        root.shell()
        for jar in kafka_release(version).jars:
            root.file(f"opt/kafka/libs/{jar.name}", jar)
        for folder in ("opt/kafka/config", "mnt/shared/config", "var/lib/kafka/data"):
            root.folder(folder)
        root.text("etc/kafka/docker/run", _ENTRY.read_text(), 0o755)
        root.text("etc/kafka/docker/server.properties", "# All comes from the environment.\n")
        for name in ("etc/kafka/docker", "opt/kafka/config"):
            root.text(f"{name}/log4j2.yaml", _LOGGING.read_text())
            root.text(f"{name}/tools-log4j2.yaml", _LOGGING.read_text())


class RootFileSystem:
    """A file system that grows file by file, as the archive that an engine imports."""

    def __init__(self, archive: Path) -> None:
        self._tar = tarfile.open(archive, "w")  # noqa: SIM115 - closed by __exit__
        self._has: set[str] = set()

    def __enter__(self) -> RootFileSystem:
        for name, text in _ETC.items():
            self.text(name, text)
        self.folder("tmp", 0o1777)
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def _add(self, name: str, content: bytes = b"", **attributes: Any) -> None:
        if name not in self._has:
            self._has.add(name)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            self._tar.addfile(info, io.BytesIO(content))

    def folder(self, name: str, mode: int = 0o755) -> None:
        self._add(name, type=tarfile.DIRTYPE, mode=mode)

    def text(self, name: str, text: str, mode: int = 0o644) -> None:
        self._add(name, text.encode(), mode=mode)

    def link(self, name: str, to: str) -> None:
        self._add(name, type=tarfile.SYMTYPE, linkname=to)

    def file(self, name: str, source: Path) -> None:
        if name not in self._has:
            self._has.add(name)
            self._tar.add(source.resolve(), name)

    def program(self, name: str, source: Path) -> None:
        self.file(name, source)
        self.libraries([source])

    def libraries(self, programs: Iterable[Path]) -> None:
        for library in linked(programs):
            self.file(str(library).lstrip("/"), library)

    def shell(self) -> None:
        """Add a shell and the usual small programs.

        Raises:
            EnvironmentFault: there is no busybox that needs no library.
        """
        found = shutil.which("busybox")
        if found is None or linked([Path(found)]):
            raise EnvironmentFault(
                "An image needs a static busybox for its shell: install busybox-static."
            )
        self.file("bin/busybox", Path(found))
        for name in _run([found, "--list"]).split():
            if name != "busybox":
                self.link(f"bin/{name}", "busybox")

    def java(self, java: Java, work: Path) -> None:
        """Add a Java runtime, cut to what a broker needs.

        Raises:
            EnvironmentFault: that Java is a runtime itself, with nothing to make another one from.
        """
        jdk, home = java.path.resolve().parent.parent, work / "java"
        if not (jdk / "bin" / "jlink").exists() or not (jdk / "jmods").is_dir():
            raise EnvironmentFault(
                f"An image needs a whole JDK, and {jdk} has no jlink: install one, "
                "or set JAVA_HOME."
            )
        cut = [str(jdk / "bin" / "jlink"), "--add-modules", _MODULES, "--strip-debug"]
        _run([*cut, "--no-man-pages", "--output", str(home)])
        _run([str(home / "bin" / "java"), "-Xshare:dump"])
        self.file("opt/java", home)
        known = _run(["ldconfig", "-p"], check=False)
        matches = (
            re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", known, re.MULTILINE)
            for name in _BESIDES
        )
        beside = [Path(found[1]) for found in matches if found]
        self.libraries([*home.rglob("*.so"), home / "bin" / "java", *beside])
        for library in beside:
            self.file(str(library).lstrip("/"), library)


def linked(programs: Iterable[Path]) -> set[Path]:
    """Return the libraries that programs and libraries are linked with, as ``ldd`` finds them."""
    found: set[Path] = set()
    for program in programs:
        said = _run(["ldd", str(program)], check=False)
        found |= {Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", said, re.MULTILINE)}
    return {path for path in found if "/java/" not in str(path)}


def _run(command: list[str], *, check: bool = True) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFault(f"{command[0]} does not run: {error}") from None
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise EnvironmentFault(f"{command[0]} failed: {said}")
    return done.stdout
