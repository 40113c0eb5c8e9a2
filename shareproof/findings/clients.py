"""Clients: scripts of the hostile broker, and programs of the libraries in front of it."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fixtures.adapters.clients import in_java
from fixtures.adapters.shipped import command_of
from fixtures.adapters.versions import NEWEST
from fixtures.machine.maven import client_release
from shareproof.findings.program import Run
from shareproof.hostile import play_on
from spec.verdict import EnvironmentFault

SCRIPTS = Path(__file__).parents[2] / "docs" / "findings" / "scripts"


async def _ends_with_1(run: Run, script: str, program: Sequence[str | Path]) -> bool:
    async with run.open_env() as env:
        code = await play_on(env, SCRIPTS / "hostile" / script, [str(word) for word in program])
    if code not in (0, 1):
        raise EnvironmentFault(f"The program ended with exit code {code}.")
    return code == 1


async def behind_a_slow_broker(run: Run) -> bool:
    """A broker that takes six seconds for each fetch, beside two that do not: finding 135.

    Exit code 1 if a record of the others waits for over three seconds, too.
    """
    node, adapter = command_of("kafkats")
    with TemporaryDirectory() as folder:
        (Path(folder) / "node_modules").symlink_to(Path(adapter).with_name("node_modules"))
        program = shutil.copy(SCRIPTS / "kafkats" / "slow.mjs", folder)
        return await _ends_with_1(run, "slow-broker.toml", [node, program])


async def beside_its_double(run: Run) -> bool:
    """The same calls to a share consumer and to MockShareConsumer: finding 136.

    Exit code 1 if one of them returns something else.
    """
    version, quiet = NEWEST["java"], "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    java = in_java(
        "The program of finding 136",
        f"findings {version}",
        client_release(version),
        [SCRIPTS / "java"],
        folders=[SCRIPTS / "java"],
        start=(quiet, "Double"),
        kind="program",
    )
    return await _ends_with_1(run, "singles.toml", java)
