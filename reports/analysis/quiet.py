"""What the JVM of Spark prints while it starts: its chatter is dropped, all else is shown."""

import contextlib
import os
import re
import threading
from collections.abc import Iterator

_STDERR = 2
_CHATTER = re.compile(
    rb"WARNING: |Picked up \w*JAVA\w*OPTIONS|Using Spark's default log4j|"
    rb"Setting default log level|Setting Spark log level|To adjust logging level|"
    rb"SLF4J: |\d\d/\d\d/\d\d \d\d:\d\d:\d\d (WARN|INFO) "
)
"""How lines begin that tell nobody anything: which modules it uses, how to change its log level."""
_ENDS_WITHIN = 5.0


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Filter what processes started here print on standard error, for as long as they live.

    Their descriptor is a pipe from here on; ours is put back at the end. If the body fails, what is
    left in the pipe is shown first, so that the error stands below the reasons for it.
    """
    readable, writable = os.pipe()
    screen = os.dup(_STDERR)
    os.dup2(writable, _STDERR)
    os.close(writable)
    shown = threading.Thread(target=_show, args=(readable, screen), daemon=True)
    shown.start()
    try:
        yield
    except BaseException:
        os.dup2(screen, _STDERR)
        shown.join(_ENDS_WITHIN)
        raise
    os.dup2(screen, _STDERR)


def _show(readable: int, screen: int) -> None:
    with open(readable, "rb") as lines, open(screen, "wb", buffering=0) as shown:
        for line in lines:
            if not _CHATTER.match(line):
                with contextlib.suppress(OSError):
                    shown.write(line)
