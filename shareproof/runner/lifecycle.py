"""One cluster per run: started once, beside the workers, and stopped whatever happens.

The controller owns the cluster. Workers learn of it through a folder: a worker that needs the
cluster leaves the file ``wanted`` there and waits for ``info.json`` or ``fault.txt``. That lets the
brokers start while the workers import their tests, and lets a run that needs no cluster do without.
"""

import shutil
import tempfile
import threading
import time
from pathlib import Path

from fixtures.interface.info import ClusterInfo
from fixtures.targets import open_target
from spec.verdict import EnvironmentFault
from suites.options import RunOptions

START_LIMIT = 300.0
"""Seconds a worker waits for the cluster; the first run of a release downloads it before."""

LAST_WAIT = 20.0
"""Seconds that a start under way gets to come to its end when the run is over already."""

PAUSE = 0.02


class Rendezvous:
    """The folder by which the controller tells its workers of the cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._info = folder / "info.json"
        self._fault = folder / "fault.txt"
        self._wanted = folder / "wanted"

    @property
    def wanted(self) -> bool:
        return self._wanted.exists()

    def want(self) -> None:
        self._wanted.touch()

    def publish(self, info: ClusterInfo) -> None:
        self._write(self._info, info.to_json())

    def give_up(self, sentence: str) -> None:
        self._write(self._fault, sentence)

    def look(self) -> ClusterInfo | None:
        if self._fault.exists():
            raise EnvironmentFault(self._fault.read_text(encoding="utf-8"))
        if self._info.exists():
            return ClusterInfo.from_json(self._info.read_text(encoding="utf-8"))
        return None

    def wait(self, within: float = START_LIMIT) -> ClusterInfo:
        self.want()
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if info := self.look():
                return info
            threading.Event().wait(PAUSE)
        raise EnvironmentFault(f"the target was not up after {within:g} s")

    @staticmethod
    def _write(file: Path, text: str) -> None:
        draft = file.with_suffix(".draft")
        draft.write_text(text, encoding="utf-8")
        draft.rename(file)


class ClusterOwner:
    def __init__(self, options: RunOptions) -> None:
        self.rendezvous = Rendezvous(Path(tempfile.mkdtemp(prefix="shareproof-run-")))
        self.start_seconds = 0.0
        self._target = open_target(options.target, options.target_options)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="target", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the target, if need be as soon as its start is through."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(timeout=LAST_WAIT)
        if self.rendezvous.wanted:
            self._target.stop()
        shutil.rmtree(self.rendezvous.folder, ignore_errors=True)

    def _serve(self) -> None:
        while not self.rendezvous.wanted:
            if self._end.wait(PAUSE):
                return
        began = time.monotonic()
        try:
            self._target.start()
            self.start_seconds = time.monotonic() - began
            self.rendezvous.publish(self._target.info)
        except Exception as error:  # whatever it is, the waiting must learn of it
            if not self._end.is_set():
                self.rendezvous.give_up(str(error) or type(error).__name__)
