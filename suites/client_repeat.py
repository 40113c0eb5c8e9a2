"""Certify the model client again and again: ``python -m suites.client_repeat``.

Every check of clients is played with one seed after the other in front of the reference broker, as
the hunt for mutants plays them: in one process, many at a time. Whatever does not pass is printed,
because the model client passes everything, or the check is not to be trusted.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import time

from fixtures.clients.adapter import Adapter
from fixtures.clients.shipped import command_of
from fixtures.reference.target import ReferenceTarget
from suites.client_mutants import Hunt
from suites.detection.cases import Case, cases
from suites.inventory import CLIENT, read_checks


async def once(target: ReferenceTarget, seed: int, together: int, client: str) -> list[str]:
    """Play every check with one seed; return what did not pass."""
    pack, room = Hunt(target, seed), asyncio.Semaphore(together)
    wrong: list[str] = []
    adapter = Adapter(command_of(client))
    await adapter.start()

    async def play(case: Case) -> None:
        async with room:
            _, how = await pack.play(adapter, f"{seed}", case)
        if how != "passed":
            name = case.check.id.rpartition("/")[2]
            wrong.append(f"seed {seed}: {name} {dict(case.parameters)}: {how}")

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


async def repeat(times: int, first: int, together: int, client: str) -> int:
    """Play all seeds; return how many rounds were not clean."""
    target = ReferenceTarget(brokers=3)
    await asyncio.to_thread(target.start)
    bad = 0
    try:
        for seed in range(first, first + times):
            began = time.monotonic()
            wrong = await once(target, seed, together, client)
            bad += bool(wrong)
            print(f"seed {seed}: {len(wrong)} not passed ({time.monotonic() - began:.0f} s)")
            print("".join(f"    {line}\n" for line in wrong), end="", flush=True)
    finally:
        await asyncio.to_thread(target.stop)
    print(f"{times - bad} of {times} rounds clean")
    return bad


def main() -> int:
    """Repeat; exit code 1 if any round was not clean."""
    parser = argparse.ArgumentParser(description="Certify the model client again and again.")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--together", type=int, default=12, help="checks at a time")
    parser.add_argument("--client", default="model")
    options = parser.parse_args()
    bad = asyncio.run(repeat(options.times, options.seed, options.together, options.client))
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
