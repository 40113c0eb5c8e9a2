"""The hostile broker by itself, to try any program against it: no adapter, no judge.

``shareproof hostile script.toml -- python app.py`` starts the reference broker, makes a
topic with records and a group that reads it from the beginning, and runs the program with the
addresses in SHAREPROOF_BOOTSTRAP and the names in SHAREPROOF_TOPIC and SHAREPROOF_GROUP. What the
program asked for, and how often, is printed when it ends; ``--frames`` prints what was said, too.

The script's table ``[setup]`` may set how many ``records`` there are, in how many ``batches``, who
leads the partition (``leader``), how many ``partitions`` there are, how long locks last
(``lock_ms``) and the ``isolation`` level.
"""

import asyncio
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from fixtures.hostile.script import OperationContext, Script, ScriptError, read_script
from fixtures.hostile.tap import Tap
from fixtures.targets import TargetOptions, open_target, started
from fixtures.targets.arguments import resolve_target
from fixtures.wire.schema import Schemas
from spec.verdict import Undecided
from suites.app.program import VARIABLES
from suites.broker.env import Env, Queue, open_env
from suites.client.wire import HEARTBEAT, SHARE, busiest, lines

_SHOWN = (*SHARE, HEARTBEAT, "Metadata")


async def play(
    file: Path, program: list[str], *, on: str, brokers: int, frames: int, seconds: float, seed: int
) -> int:
    with started(open_target(resolve_target(on), TargetOptions(brokers=brokers))) as target:
        schemas = Schemas.from_jar(target.info.schema_jar)
        async with open_env(target.info, Random(seed), [], schemas) as env:
            return await play_on(env, file, program, frames=frames, seconds=seconds)


async def play_on(
    env: Env, file: Path, program: list[str], *, frames: int = 0, seconds: float = 60.0
) -> int:
    script = read_script(file)
    queue = await _laid(env, script)
    schemas = env.cluster.schemas
    tap = Tap(schemas=schemas, brokers=dict(env.cluster.brokers), script=script)
    context = OperationContext(
        admin=env.admin,
        topic=queue.topic,
        close_connections=tap.close_connections,
        disappear=tap.disappear,
    )
    tap.scripted.context = context
    await tap.start()
    code = await _run(program, tap, queue, seconds)
    _report(tap, frames)
    await _left(queue, context)
    await tap.stop()
    return code


async def _laid(env: Env, script: Script) -> Queue:
    wanted: dict[str, Any] = {"records": 3, "batches": 1, "leader": 0}
    wanted |= {"lock_ms": None, "isolation": "", "partitions": 1}
    if not script.setup.keys() <= wanted.keys():
        raise ScriptError(f"[setup] may have {', '.join(wanted)}, not {dict(script.setup)}")
    wanted |= script.setup
    options: dict[str, Any] = {name: wanted[name] for name in ("batches", "lock_ms")}
    if wanted["isolation"]:
        options["group_config"] = {"share.isolation.level": wanted["isolation"]}
    if not wanted["leader"]:
        return await env.queue(wanted["records"], partitions=wanted["partitions"], **options)
    queue = await env.queue(assignments=[sorted(env.cluster.brokers)], **options)
    queue = replace(queue, topic=await env.admin.move_leader(queue.topic, wanted["leader"]))
    await queue.produce(wanted["records"], batches=wanted["batches"])
    return queue


async def _run(program: list[str], tap: Tap, queue: Queue, seconds: float) -> int:
    variables = {
        VARIABLES["bootstrap"]: ",".join(tap.bootstrap),
        VARIABLES["topic"]: queue.topic.name,
        VARIABLES["group"]: queue.group,
    }
    process = await asyncio.create_subprocess_exec(*program, env=os.environ | variables)
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        process.kill()
        print(f"the program was ended after {seconds:g} s")
        return await process.wait()


def _report(tap: Tap, frames: int) -> None:
    for api in sorted({one.api for one in tap.exchanges}):
        seen = tap.of(api)
        scripted = Counter(one.scripted for one in seen if one.scripted)
        acts = ", ".join(f"{count} {what}" for what, count in scripted.items())
        print(f"{api:24} {len(seen):6}, at most {busiest(seen)} in a second; {acts or 'as it was'}")
    shown = list(lines(tap.of(*_SHOWN)))
    print("\n".join(shown[:frames]))
    if frames and len(shown) > frames:
        print(f"         … and {len(shown) - frames} lines more")


async def _left(queue: Queue, context: OperationContext) -> None:
    try:
        found = await queue.env.admin.share_offsets(queue.group, context.topic)
        members = (await queue.env.admin.describe_group(queue.group)).members
    except Undecided as why:
        print(f"nothing is known of the group: {why}")
        return
    start = found[0].start if found else "unknown"
    print(f"start offset {start}, {len(members)} members left in the group")
