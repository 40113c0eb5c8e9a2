"""The controller's side of a run: owns the target, gathers the reports, settles and publishes.

A run has one controller, whether it has workers or not, and the controller is the only one that
writes results. It does so also when the run is cut short.

There is one cluster per run: started once, beside the workers, and stopped whatever happens.
Workers learn of it through a folder: a worker that needs the cluster leaves the file ``wanted``
there and waits for ``info.json`` or ``fault.txt``. That lets the brokers start while the workers
import their tests, and lets a run that needs no cluster do without.
"""

import functools
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fixtures.interface.capability import Capability
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import UsageFault
from fixtures.targets import open_target
from reports import console, html
from reports.headlines import of_results
from reports.results import Results
from reports.verdicts import FAULT, INTERRUPTED, USAGE
from shareproof.runner import allured, outcome
from shareproof.runner.checks import existing, rules_of, transcript_name
from shareproof.runner.options import introduced, invocation_of, run_options_of
from shareproof.runner.recorder import Recorder
from shareproof.runner.scheduler import MOVING, scope, stage_scheduler
from spec.plain import text_of
from spec.rule import SpecError
from spec.verdict import EnvironmentFault
from suites.options import OWN, RunOptions

START_LIMIT = 300.0
"""Seconds a worker waits for the cluster; the first run of a release downloads it before."""

LAST_WAIT = 20.0
"""Seconds that a start under way gets to come to its end when the run is over already."""

PAUSE = 0.02


class Rendezvous:
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


class Controller:
    def __init__(self, config: pytest.Config) -> None:
        try:
            self.options = introduced(run_options_of(config))
            self.owner = ClusterOwner(self.options)
        except UsageFault as fault:
            raise pytest.UsageError(str(fault)) from None
        except EnvironmentFault as fault:
            pytest.exit(str(fault), returncode=FAULT)
        self.config = config
        self.recorder = Recorder(self.options, config.rootpath / "suites" / self.options.suite)
        self.results: Results | None = None
        self.info: ClusterInfo | None = None
        config.add_cleanup(self.owner.close)
        if self.options.out:
            out = Path(self.options.out)
            for name in (name for name in OWN if name != "pytest.log"):
                (out / name).unlink(missing_ok=True)
            for name in ("allure-results", "transcripts"):
                shutil.rmtree(out / name, ignore_errors=True)
            out.mkdir(parents=True, exist_ok=True)
            if not self.config.option.xmlpath:
                self.config.option.xmlpath = str(out / "junit.xml")
        if threading.current_thread() is threading.main_thread():
            # End like Ctrl-C does: with a partial report and without a broker left behind.
            before = signal.signal(signal.SIGTERM, signal.default_int_handler)
            restore: Any = functools.partial(signal.signal, signal.SIGTERM, before)
            config.add_cleanup(restore)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["shareproof"] = {
            "options": text_of(self.options),
            "rendezvous": str(self.owner.rendezvous.folder),
            "chosen": sorted(self.config.stash.get(outcome.CHOSEN, ())),
        }

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        by_scope = config.getvalue("dist") == "loadscope"
        exclusive = () if self._ours else MOVING
        return stage_scheduler(config, log, exclusive) if by_scope else None

    def pytest_report_header(self) -> str:
        """Print the seed first: it is what a repetition needs."""
        return f"shareproof: seed {self.options.seed}, target {self.options.target}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        # Files of stages, which have their own clusters, want none of the run's.
        root = self.config.rootpath
        files = [file / "test_.py" if file.is_dir() else file for file in self._paths]
        ids = [file.relative_to(root).as_posix() for file in files if file.is_relative_to(root)]
        staged = len(ids) == len(files) and all(scope(id_) != id_ for id_ in ids)
        if self._may_reach_checks() and not staged:
            self.owner.rendezvous.want()
        self.owner.begin()

    @property
    def _paths(self) -> list[Path]:
        start = self.config.invocation_params.dir
        return [(start / arg.split("::")[0]).resolve() for arg in self.config.args]

    def _may_reach_checks(self) -> bool:
        """Tell from the command line whether checks will be collected: workers collect later."""
        folder = self.recorder.checks_folder
        reached = (folder.is_relative_to(p) or p.is_relative_to(folder) for p in self._paths)
        return not self.config.option.collectonly and folder.is_dir() and any(reached)

    @property
    def _ours(self) -> bool:
        return Capability.OWN_CLUSTER in self.options.offers

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers: wait for the cluster before the first check, or give up at once."""
        self._await_cluster([item.nodeid for item in session.items if rules_of(item)])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        folder = self.recorder.checks_folder.relative_to(self.config.rootpath).as_posix()
        self._await_cluster([id_ for id_ in ids if id_.startswith(f"{folder}/")])

    def _await_cluster(self, checks: list[str]) -> None:
        self.recorder.planned.update(checks)
        common = [check for check in checks if scope(check) == check or not self._ours]
        if not common or self.config.option.collectonly:
            return
        try:
            self.info = self.owner.rendezvous.wait()
        except EnvironmentFault as fault:
            self.recorder.faults.append(str(fault))
            pytest.exit(str(fault), returncode=FAULT)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        result = yield
        chosen = self.recorder.undecided()
        if chosen and not (self.config.getoption("once") or session.shouldstop):
            self.recorder.begin_again(chosen)
            # Transcripts of first tries are not to be written over by the second.
            out = Path(self.options.out) if self.options.out else None
            for check in chosen:
                if out and (name := existing(out, transcript_name(check))):
                    (out / name).rename(out / transcript_name(check, first=True))
            outcome.play_again(session, chosen)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.recorder.take(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A test file that cannot be imported is our fault, and no rule's."""
        if report.failed:
            self.recorder.faults.append(f"harness: {report.nodeid} cannot be collected")

    def pytest_internalerror(self, excrepr: object) -> None:
        last = str(excrepr).strip().splitlines()[-1]
        self.recorder.faults.append(f"harness: pytest failed inside: {last}")

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, KeyboardInterrupt) and not self.recorder.faults:
            self.recorder.interrupted = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        recorder = self.recorder
        ran = bool(recorder.planned or recorder.seen)
        if self.config.option.collectonly or not (ran or recorder.faults):
            some = self.options.only or self.options.fast
            if recorder.interrupted:
                session.exitstatus = INTERRUPTED
            elif some and self._may_reach_checks() and not recorder.seconds:
                session.exitstatus = USAGE
            return
        try:
            session.exitstatus = self._settle()
        except (SpecError, UsageFault) as error:
            recorder.faults.append(f"the specification is malformed: {error}")
            session.exitstatus = FAULT

    def _settle(self) -> int:
        recorder = self.recorder
        # There is a canary where the broker checks were asked for as a whole, not single files.
        start = self.config.invocation_params.dir
        paths = [(start / arg).resolve() for arg in self.config.args]
        whole = any(recorder.checks_folder.is_relative_to(path) for path in paths)
        if recorder.planned and whole and not self.options.client:
            recorder.heed_canary()
        self.results = found = recorder.results(self.info, self.owner.start_seconds)
        if out := self.options.out and Path(self.options.out):
            html.publish(out, found)
            of_results(found).write(out)
            allured.write(out, found)
        if invocation := invocation_of(self.config):
            invocation.results = found
        return found.run.exit_code

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.results:
            terminalreporter.section("verdicts")
            terminalreporter.write(console.render_text(self.results))
