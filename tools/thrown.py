"""Which programming errors the share-group code of a broker throws, logged or not.

An exception in a callback ends in a future that nobody looks at: no log has it, and the rest of
the callback is not done (finding 138). The JVM's own log has every exception::

    shareproof broker --target kafka:4.4.0 --broker-jvm=-Xlog:exceptions=info:file=DIR/%p.log
    python -m tools.thrown DIR

Prints a line for each place that throws, with the methods that it passed through, and how often.
``--all`` prints other exceptions, too: those are how Java code refuses, and no errors.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ERRORS = re.compile(
    r"(NullPointer|IllegalState|IllegalArgument|ClassCast|IndexOutOfBounds|ConcurrentModification"
    r"|NoSuchElement|Arithmetic|UnsupportedOperation|NumberFormat|BufferUnderflow"
    r"|NegativeArraySize)Exception$|/(Assertion|StackOverflow|OutOfMemory)Error$"
)
OURS = re.compile(r"share|Share|Persister|coordinator/group/|coordinator/common/|KafkaApis")
FRAME = re.compile(
    r"Exception <a '([^']+)'\{(0x\w+)\}[^\n]*\n"
    r" thrown in [^<\n]*<\{method\} \{0x\w+\} '([^']+)' '[^']*' in '([^']+)'>\n"
    r" at [^\n]* for thread (0x\w+)"
)
DEPTH = 7  # Methods of a chain that are told.

Chain = tuple[str, ...]


def chains(text: str) -> Iterator[tuple[str, Chain]]:
    last: dict[str, tuple[str, str, list[str]]] = {}
    for kind, address, name, owner, thread in FRAME.findall(text):
        method = f"{owner.partition('$$Lambda')[0]}.{name}"
        before = last.get(thread)
        if before is None or before[:2] != (kind, address):
            if before is not None:
                yield before[0], tuple(before[2])
            last[thread] = (kind, address, [method])
        elif before[2][-1] != method:
            before[2].append(method)
    for kind, _, methods in last.values():
        yield kind, tuple(methods)


def thrown(folder: Path, *, every: bool) -> Counter[tuple[str, Chain]]:
    found: Counter[tuple[str, Chain]] = Counter()
    for log in sorted(folder.glob("*.log*")):
        for kind, methods in chains(log.read_text(encoding="utf-8", errors="replace")):
            if (every or ERRORS.search(kind)) and any(map(OURS.search, methods)):
                found[_name(kind), tuple(map(_name, methods[:DEPTH]))] += 1
    return found


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the JVMs of the brokers log exceptions")
    parser.add_argument("--all", action="store_true", help="other exceptions, too")
    options = parser.parse_args()
    if not list(options.folder.glob("*.log*")):
        sys.exit(f"{options.folder}: there is no *.log of a JVM in it.")
    for (name, methods), count in thrown(options.folder, every=options.all).most_common():
        print(f"{count:6} {name} in {' < '.join(methods)}")


if __name__ == "__main__":
    main()
