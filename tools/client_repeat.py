"""Certify the model client again and again: ``python -m tools.client_repeat``.

Every check of clients is played with one seed after the other, as the hunt for mutants plays them:
in one process, many at a time. Checks that need the hostile broker get it, and all others face
``--target``, which is the reference broker unless it names another one. Whatever does not pass is
printed, because the model client passes everything, or the check is not to be trusted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import sys
import time
from collections.abc import AsyncIterator

from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.targets import Target, TargetOptions, UsageFault, open_target
from shareproof.runner.inventory import CLIENT, read_checks
from spec.verdict import EnvironmentFault
from tools.client_mutants import Hunt
from tools.detection.cases import Case, cases


async def once(pack: Hunt, together: int, client: str) -> list[str]:
    """Play every check with one seed; return what did not pass."""
    room = asyncio.Semaphore(together)
    wrong: list[str] = []
    adapter = Adapter(command_of(client))
    await adapter.start()

    async def play(case: Case) -> None:
        async with room:
            _, how = await pack.play(adapter, f"{pack.seed}", case)
        if how != "passed":
            name = case.check.id.rpartition("/")[2]
            wrong.append(f"seed {pack.seed}: {name} {dict(case.parameters)}: {how}")

    try:
        shared = [case for check in read_checks(CLIENT) for case in cases(check)]
        # Who kills its process cannot share it.
        alone = [c for c in shared if "doomed" in inspect.signature(c.function).parameters]
        await asyncio.gather(*(play(case) for case in shared if case not in alone))
        for case in alone:
            await play(case)
    finally:
        await adapter.stop()
    return wrong


@contextlib.asynccontextmanager
async def _started(target: Target) -> AsyncIterator[ClusterInfo]:
    await asyncio.to_thread(target.start)
    try:
        yield target.info
    finally:
        await asyncio.to_thread(target.stop)


async def repeat(options: argparse.Namespace) -> int:
    """Play all seeds; return how many rounds were not clean."""
    bad = 0
    async with contextlib.AsyncExitStack() as stack:
        hostile = await stack.enter_async_context(
            _started(open_target("reference", TargetOptions(brokers=3)))
        )
        facing = hostile
        if options.target != "reference":
            target = open_target(options.target, TargetOptions(brokers=1))
            facing = await stack.enter_async_context(_started(target))
        print(f"{options.client} in front of {options.target} {facing.version}", flush=True)
        for seed in range(options.seed, options.seed + options.times):
            began = time.monotonic()
            wrong = await once(Hunt(hostile, seed, facing), options.together, options.client)
            bad += bool(wrong)
            print(f"seed {seed}: {len(wrong)} not passed ({time.monotonic() - began:.0f} s)")
            print("".join(f"    {line}\n" for line in wrong), end="", flush=True)
    print(f"{options.times - bad} of {options.times} rounds clean")
    return bad


def main() -> int:
    """Repeat; exit code 1 if any round was not clean, 2 and 3 as in every command."""
    parser = argparse.ArgumentParser(description="Certify the model client again and again.")
    parser.add_argument("--target", default="reference", help="kafka:VERSION, for one")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--together", type=int, default=12, help="checks at a time")
    parser.add_argument("--client", default="model")
    try:
        return int(asyncio.run(repeat(parser.parse_args())) > 0)
    except UsageFault as fault:
        print(fault, file=sys.stderr)
        return 2
    except EnvironmentFault as fault:
        print(fault, file=sys.stderr)
        return 3


if __name__ == "__main__":
    raise SystemExit(main())
