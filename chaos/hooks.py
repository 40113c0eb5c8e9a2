"""Breaking brokers that are not ours: by commands that their owner gives, and by no other means.

A file of hooks has one command for each verb; ``{node}`` stands for the broker's id, ``{host}`` and
``{port}`` for what it advertises::

    kill = "ssh {host} systemctl kill -s KILL kafka"
    start = "ssh {host} systemctl start kafka"
"""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fixtures.targets import UsageFault
from spec.verdict import EnvironmentFault

VERBS = ("kill", "stop", "start", "pause", "resume")
UNDONE_BY: Mapping[str, str] = {"kill": "start", "stop": "start", "pause": "resume"}
"""What it takes to heal what a verb broke."""
_WITHIN = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Commands by verb."""

    commands: Mapping[str, str]

    @classmethod
    def read(cls, file: Path) -> Hooks:
        """Read a file of hooks.

        Raises:
            UsageFault: it cannot be read, has a verb that there is not, or one without its undoing.
        """
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageFault(f"--hooks {file}: {error.strerror}.") from None
        except ValueError as error:
            raise UsageFault(f"--hooks {file}: {error}.") from None
        for verb, command in found.items():
            if verb not in VERBS or not isinstance(command, str):
                raise UsageFault(f"--hooks {file}: {verb} is none of {', '.join(VERBS)}.")
            undo = UNDONE_BY.get(verb, verb)
            if undo not in found:
                raise UsageFault(f"--hooks {file}: {verb} cannot be healed without {undo}.")
        return cls(commands=found)


@dataclass(slots=True, kw_only=True)
class HookedBroker:
    """Somebody's broker; what is known of it is what we did to it."""

    node_id: int
    host: str
    port: int
    hooks: Hooks
    is_frozen: bool | None = None
    exit_code: int | None = None
    is_alive: bool = True
    done: list[str] = field(default_factory=list)

    def kill(self) -> None:
        """Run the command for it."""
        self._run("kill")
        self.is_alive = False

    def stop(self) -> None:
        """Run the command for it."""
        self._run("stop")
        self.is_alive = False

    def start(self) -> None:
        """Run the command for it, if we took it down."""
        if not self.is_alive:
            self._run("start")
            self.is_alive = True

    def pause(self) -> None:
        """Run the command for it."""
        self._run("pause")

    def resume(self) -> None:
        """Run the command for it, if we froze it."""
        if self.done and self.done[-1] == "pause":
            self._run("resume")

    def _run(self, verb: str) -> None:
        command = self.hooks.commands.get(verb)
        if command is None:
            raise EnvironmentFault(f"there is no hook to {verb} broker {self.node_id}")
        words = [
            word.format(node=self.node_id, host=self.host, port=self.port)
            for word in shlex.split(command)
        ]
        self.done.append(verb)
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=_WITHIN, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentFault(f"hook {verb} of broker {self.node_id}: {error}") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-200:]
            raise EnvironmentFault(f"hook {verb} of broker {self.node_id} failed: {said}")
