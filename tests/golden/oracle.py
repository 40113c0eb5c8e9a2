"""Questions to the Java program beside this file, all of them in one start of a JVM.

The compiler is a library, Eclipse's, so that a Java without ``javac`` will do. What it made is kept
in the cache under a name that changes with the source, the release and the Java.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fixtures.machine.cache import cache_root, staged
from fixtures.machine.java import broker_environment, find_java
from fixtures.machine.maven import Release, compiler_jar, kafka_release
from tests.release import RELEASE

_SOURCE = Path(__file__).with_name("Golden.java")
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_TIMEOUT = 120.0

Question = Mapping[str, Any]
Answer = dict[str, Any]


def ask(questions: Iterable[Question]) -> list[Answer]:
    """Return one response for each question, in order; see ``Golden.java`` for what they are."""
    release = kafka_release(RELEASE)
    classpath = os.pathsep.join((str(_compiled(release)), release.classpath))
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    return [json.loads(line) for line in _java("-cp", classpath, "Golden", text=lines).splitlines()]


def _compiled(release: Release) -> Path:
    identity = f"{release.version} {find_java().identity}\n{_SOURCE.read_text()}"
    home = cache_root() / f"golden-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    if not home.is_dir():
        options = ("-17", "-proc:none", "-cp", release.classpath)
        with staged(home) as staging:
            _java("-jar", str(compiler_jar()), *options, "-d", str(staging), str(_SOURCE))
    return home


def _java(*arguments: str, text: str = "") -> str:
    command = [str(find_java().path), *_QUICK_START, *arguments]
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT,
        check=False,
        env=broker_environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
