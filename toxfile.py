"""The table at the end of every run of tox: what ran, what did not, and why.

tox loads this plugin because it lies beside ``tox.ini``. Whatever was left out for want of a tool
says so in a file of its environment (``SHAREPROOF_NOT_RUN``, see ``fixtures/targets/doctor.py``).
An environment that ran nothing at all is skipped, which is how tox tells it from one that passed.
"""

from __future__ import annotations

import atexit
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tox.plugin import impl
from tox.tox_env.errors import Skip

if TYPE_CHECKING:
    from tox.config.sets import ConfigSet
    from tox.execute import Outcome
    from tox.session.state import State
    from tox.tox_env.api import ToxEnv

RECORD = "not-run.jsonl"
_FAULT = 3


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    outcome: str
    why: str = ""


_state: list[State] = []
_rows: dict[str, list[Row]] = {}


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:  # noqa: ARG001 - tox's names
    """Keep what knows which environments were asked for."""
    if not _state:
        _state.append(state)
        atexit.register(_print)


@impl
def tox_after_run_commands(tox_env: ToxEnv, exit_code: int, outcomes: list[Outcome]) -> None:
    left_out = read(Path(tox_env.conf["env_tmp_dir"]) / RECORD)
    _rows[tox_env.conf.name] = rows(
        tox_env.conf.name, exit_code, sum(one.elapsed for one in outcomes), left_out
    )
    if is_skipped(exit_code, left_out):
        raise Skip(left_out[0]["missing"])


@impl
def tox_env_teardown(tox_env: ToxEnv) -> None:
    """Note an environment that came to its end without having run a command."""
    name = tox_env.conf.name
    _rows.setdefault(name, [Row(name, "FAILED", "it could not be set up, see above")])


def read(record: Path) -> list[dict[str, Any]]:
    if not record.is_file():
        return []
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def is_skipped(exit_code: int, left_out: list[dict[str, Any]]) -> bool:
    return exit_code in (0, _FAULT) and any(one["whole"] for one in left_out)


def rows(name: str, exit_code: int, seconds: float, left_out: list[dict[str, Any]]) -> list[Row]:
    if is_skipped(exit_code, left_out):
        return [Row(name, "NOT RUN", one["missing"]) for one in left_out if one["whole"]]
    ended = f"FAILED, exit code {exit_code}" if exit_code else "passed"
    whole = Row(name, f"{ended} in {seconds:.0f} s")
    return [whole, *(Row(f"  {one['what']}", "NOT RUN", one["missing"]) for one in left_out)]


def table(lines: list[Row]) -> str:
    wide = max(len(row.what) for row in lines)
    middle = max(len(row.outcome) for row in lines)
    shown = (f"  {row.what:<{wide}}  {row.outcome:<{middle}}  {row.why}".rstrip() for row in lines)
    return "\n".join(("what ran, what did not, and why:", *shown))


def _print() -> None:
    if _rows:
        names = [name for name in _state[0].envs.iter() if not name.startswith(".")]
        why = "the run ended before it"
        lines = [row for one in names for row in _rows.get(one, [Row(one, "NOT RUN", why)])]
        print(f"\n{table(lines)}", flush=True)
