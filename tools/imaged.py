"""Whether the Containerfile makes an image that works, tried without any registry.

``python -m tools.imaged`` makes a base of this machine's own Python, Java and Toxiproxy, fetches
the wheels that the suite needs, builds the Containerfile on that base without a network, and runs
the image: its help, its doctor, and short certificates of the reference broker and of a cluster of
Kafka's that is started in the container. Each step is told with its seconds. Jars come from this
machine's cache, which has to have them. What the Containerfile fetches where its usual base lacks
it is not tried here.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fixtures.machine.cache import cache_root
from fixtures.machine.java import find_java
from fixtures.targets.container.engine import Engine
from fixtures.toxiproxy import find_server
from spec.verdict import EnvironmentFault
from tools.containers.dockerd import engine as some_engine
from tools.containers.images import RootFileSystem, linked

HOME = Path(__file__).parents[1]
BASE, IMAGE = "local/python-java:local", "local/shareproof:local"
_PATH = "/opt/python/bin:/opt/java/bin:/usr/local/bin:/bin"
_LEFT_OUT = ("test", "__pycache__", "idlelib", "tkinter")
LIBC = "libc.so.6"
REGISTRY = "Maven registry"
"""What ``doctor`` calls the one thing that an image without a network has to lack."""

_TRIES: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("broker", "--target", "reference", "--only", "ACK-01,ACK-07", "--out", "/out"),
    ("broker", "--target", "kafka:4.4.0", "--only", "ACK,COO-01", "--out", "/out"),
)


def base(archive: Path, work: Path) -> None:
    """Write the files of an image that has Python, Java, Toxiproxy and a shell."""
    python = work / "python"
    shutil.copytree(
        sys.base_prefix, python, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT, "*.a")
    )
    packages = next(python.glob("lib/python3*/site-packages"))
    for package in packages.iterdir():
        if not package.name.startswith("pip"):
            shutil.rmtree(package) if package.is_dir() else package.unlink()
    with RootFileSystem(archive) as root:
        root.shell()
        root.java(find_java(), work)
        root.file("opt/python", python)
        root.libraries([python / "bin" / "python3", *python.rglob("*.so")])
        # Every Linux has these, and wheels, not Python itself, ask for them: parts of the C library
        # that has been one since glibc 2.34 (PEP 600).
        library = next(one for one in linked([python / "bin" / "python3"]) if one.name == LIBC)
        for name in ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"):
            if (other := library.with_name(name)).is_file():
                root.file(str(other).lstrip("/"), other)
        root.program("usr/local/bin/toxiproxy-server", find_server())


def context(into: Path) -> None:
    """Put what git knows into a directory, and the wheels that an installation of it needs."""
    archive = into.with_suffix(".tar")
    subprocess.run(["git", "archive", "--output", str(archive), "HEAD"], cwd=HOME, check=True)
    shutil.unpack_archive(archive, into)
    wheels = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(into / "wheels")]
    wheels += ["--constraint", str(into / "lock.txt")]
    subprocess.run([*wheels, str(into), "hatchling==1.33.0"], check=True)


def build(engine: Engine, work: Path) -> None:
    import docker.errors  # noqa: PLC0415 - it comes with an extra

    client: Any = engine.client
    with timed("the base, of this machine's files"):
        base(work / "base.tar", work)
    name, _, tag = BASE.partition(":")
    client.api.import_image_from_file(
        str(work / "base.tar"), repository=name, tag=tag, changes=[f"ENV PATH={_PATH}"]
    )
    (work / "context").mkdir()
    with timed("the sources and wheels"):
        context(work / "context")
    arguments = {"BASE": BASE, "EXTRAS": "", "PIP_OPTIONS": "--no-index --find-links /src/wheels"}
    try:
        with timed("docker build"):
            client.images.build(
                path=str(work / "context"),
                dockerfile="Containerfile",
                tag=IMAGE,
                buildargs=arguments,
                network_mode="none",
                labels=dict(engine.labels),
            )
    except docker.errors.BuildError as error:
        said = "".join(str(line.get("stream", "")) for line in error.build_log)[-1500:]
        raise EnvironmentFault(f"the build failed: {error}: {said}") from None


def run(engine: Engine, *words: str) -> tuple[int, str]:
    """Run the image without a network, on our cache; return its exit code and what it printed."""
    with timed(f"docker run shareproof {' '.join(words)}"):
        container = engine.client.containers.run(
            IMAGE,
            list(words),
            labels=dict(engine.labels),
            network_mode="none",
            volumes={str(cache_root()): {"bind": "/cache", "mode": "rw"}},
            detach=True,
        )
        status = int(container.wait()["StatusCode"])
    said = container.logs().decode(errors="replace")
    container.remove()
    return status, said


def try_out(engine: Engine) -> None:
    # What the image lacks may be the network that it is run without.
    _, said = run(engine, "doctor", "--json")
    lacking = [one for one in json.loads(said) if one["needed"] and not one["ok"]]
    if strange := [one for one in lacking if one["name"] != REGISTRY]:
        raise EnvironmentFault(f"the image lacks something: {strange}")
    for words in _TRIES:
        status, said = run(engine, *words)
        if status:
            raise EnvironmentFault(f"{' '.join(words)} ended with {status}: {said[-1500:]}")


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)


def main() -> int:
    """Build and try; return 0 if all of it works, 3 if something does not."""
    engine = Engine()
    with tempfile.TemporaryDirectory(prefix="shareproof-imaged-") as work, some_engine():
        try:
            engine.start()
            build(engine, Path(work))
            print(f"{IMAGE}: {engine.client.images.get(IMAGE).attrs['Size'] >> 20} MiB")
            try_out(engine)
        except (EnvironmentFault, subprocess.CalledProcessError) as fault:
            print(f"tools.imaged: {fault}", file=sys.stderr)
            return 3
        finally:
            engine.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
