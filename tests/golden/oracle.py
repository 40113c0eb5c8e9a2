"""Questions to the Java program beside this file, all of them in one start of a JVM.

The compiler is a library, Eclipse's, so that a Java without ``javac`` will do. What it made is kept
in the cache under a name that changes with the source, the release and the Java.
"""

import base64
import hashlib
import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from fixtures.machine.cache import cache_root, staged
from fixtures.machine.java import broker_environment, find_java
from fixtures.machine.maven import Release, compiler_jar, kafka_release
from fixtures.wire.codec import Struct, default_of
from fixtures.wire.schema import FieldSpec, StructSpec
from tests.release import RELEASE

_SOURCE = Path(__file__).with_name("Golden.java")
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_TIMEOUT = 120.0

Question = Mapping[str, Any]
Answer = dict[str, Any]


def java_answers(questions: Iterable[Question]) -> list[Answer]:
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


_TEXTS = (
    "",
    "a",
    "orders-1",
    "Größe",
    "日本",
    "\N{GRINNING FACE}",
    "x" * 126,
    "y" * 127,
    "z" * 200,
)
_LENGTHS = (0, 0, 1, 1, 2, 3)
_NULLS = 0.2
_DEFAULTS = 0.4


def random_body(spec: StructSpec, version: int, rnd: Random) -> dict[str, Any]:
    present = (field for field in spec.fields if version in field.versions)
    return {field.name: _value(field, version, rnd) for field in present}


def _value(field: FieldSpec, version: int, rnd: Random) -> Any:
    if version in field.tagged and rnd.random() < _DEFAULTS:
        default = default_of(field, version)
        return default.to_dict() if isinstance(default, Struct) else default
    if version in field.nullable and rnd.random() < _NULLS:
        return None
    if field.element is not None:
        return [_single(field, field.element, version, rnd) for _ in range(rnd.choice(_LENGTHS))]
    return _single(field, field.type, version, rnd)


def _single(field: FieldSpec, kind: str, version: int, rnd: Random) -> Any:
    if field.struct is not None:
        return random_body(field.struct, version, rnd)
    return _OTHERS[kind](rnd) if kind in _OTHERS else _integer(kind, rnd)


def _bytes(rnd: Random) -> bytes:
    return rnd.randbytes(rnd.choice((0, 1, 127, 128, 300)))


_OTHERS: Mapping[str, Callable[[Random], Any]] = {
    "bool": lambda rnd: rnd.random() < 0.5,
    "string": lambda rnd: rnd.choice(_TEXTS),
    "bytes": _bytes,
    "records": _bytes,
    "uuid": lambda rnd: uuid.UUID(bytes=rnd.choice((bytes(16), rnd.randbytes(16)))),
    "float64": lambda rnd: rnd.choice((0.0, 1.5, -1e300, rnd.random())),
}


def _integer(kind: str, rnd: Random) -> int:
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    high -= not kind.startswith("u")
    return rnd.choice((0, 1, low, high, rnd.randint(low, high)))


def java_json(spec: StructSpec, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.name: field for field in spec.fields if version in field.versions}
    return {_camel(name): _json(fields[name], version, value) for name, value in body.items()}


def _json(field: FieldSpec, version: int, value: Any) -> Any:
    if isinstance(value, list):
        return [_json(field, version, item) for item in value]
    if isinstance(value, dict):
        assert field.struct is not None
        return java_json(field.struct, version, value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):  # Kafka's Uuid.toString
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)
