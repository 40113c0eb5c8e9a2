"""A worker of the sweep: cases in front of one hostile broker of its own, many at a time."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence

from fixtures.clients.adapter import AdapterDied, AdapterFault
from fixtures.interface.info import ClusterInfo
from fixtures.proxies.exchange import Exchange
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault, Undecided
from suites.client import settings
from suites.client.harness import AdapterProcess, Harness, harness_on, hostile_broker
from suites.client.settings import Trial
from suites.client.sweep.application import play
from suites.client.sweep.cases import Case
from suites.client.sweep.rules import RECOVERS, accounted, judge
from suites.client.wire import lines
from suites.sweep import Finding, Played

TOGETHER = 32  # Cases at a time in front of one hostile broker: what they do most is wait.
LONGEST = 150.0  # Seconds after which a case is given up.
_ENDED_BY_OTHERS = ("ended with -9", "ended with -15")
"""By the machine when its memory is full, or by whoever stops the sweep."""

_FRAMES = 400  # Lines of frames kept of a case that broke a rule.


Tell = Callable[[Played], None]
AnyCase = Case | Trial


def work(
    command: Sequence[str],
    cases: Sequence[AnyCase],
    seed: int,
    tell: Tell,
    together: int = TOGETHER,
) -> None:
    adapter, turns = AdapterProcess(command), asyncio.Semaphore(together)

    async def play_all(cluster: tuple[ClusterInfo, Schemas]) -> None:
        async def one(case: AnyCase) -> None:
            async with turns:
                tell(await _played(cluster, adapter, case, seed, alone=together == 1))

        try:
            await asyncio.gather(*map(one, cases))
        finally:
            await adapter.stop()

    with hostile_broker() as cluster:
        asyncio.run(play_all(cluster))


async def _played(
    cluster: tuple[ClusterInfo, Schemas],
    process: AdapterProcess,
    case: AnyCase,
    seed: int,
    *,
    alone: bool,
) -> Played:
    began, died = time.monotonic(), False
    transcripts: list[Transcript] = []
    rng = random.Random(f"{seed} {case.name}")
    about = case.rule if isinstance(case, Trial) else RECOVERS
    findings: list[Finding] = []
    said = {"undecided": "", "fault": ""}
    frames = ""
    try:
        async with asyncio.timeout(LONGEST):
            adapter = await process.running()
            async with harness_on(*cluster, adapter, rng, transcripts) as harness:
                findings, exchanges = await _findings(harness, case)
            if isinstance(case, Case):
                findings += accounted(case.name, harness.account)
        if any(one.broken for one in findings):
            frames = "\n".join(list(lines(exchanges))[:_FRAMES])
    except Undecided as why:
        said["undecided"] = str(why)
    except TimeoutError:
        said["undecided"] = f"not over after {LONGEST:g} s"
    except AdapterDied as death:
        died = True
        if alone and not any(end in str(death) for end in _ENDED_BY_OTHERS):
            findings = [Finding(rule=about, broken=f"{case.name}: {death}", responses=1)]
        else:
            said["fault"] = str(death)
    except (AdapterFault, EnvironmentFault) as fault:
        said["fault"] = str(fault)
    except Exception as error:  # ours to repair, and no reason to lose all other cases
        said["fault"] = f"harness: {type(error).__name__}: {error}"
    return Played(
        case=case.name,
        rule=about,
        findings=tuple(findings),
        died=died,
        seconds=time.monotonic() - began,
        frames=frames,
        **said,
    )


async def _findings(harness: Harness, case: AnyCase) -> tuple[list[Finding], list[Exchange]]:
    if isinstance(case, Trial):
        sentence = settings.broken(case, await settings.play(harness, case))
        return [Finding(rule=case.rule, broken=sentence, responses=1)], harness.tap.exchanges
    story = await play(harness, case)
    return judge(case, story), story.exchanges
