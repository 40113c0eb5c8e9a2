"""A group's session timeout and a heartbeat interval that only the broker has: finding 044.

PYTHONPATH=. python docs/findings/scripts/session_and_heartbeat.py 4.2.1

One broker whose heartbeat interval is 500 ms. Run it from a clone.
"""

from __future__ import annotations

import asyncio
import random
import sys

from fixtures.targets import Target, open_target
from fixtures.wire.errors import error_name
from suites.broker.share import world

PROPERTIES = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "500",
}


async def play(target: Target) -> None:
    """Ask for one session timeout after the other."""
    async with world(target.info, random.Random(), []) as share:
        for session in (500, 501, 4999, 5000, 5001):
            configs = {"share.session.timeout.ms": str(session)}
            answer = await share.admin.try_group_config(share.cluster.fresh_name("g"), configs)
            print(session, error_name(answer.error_code), answer.error_message or "", flush=True)


def main() -> None:
    """Start the broker and play."""
    target = open_target(f"kafka:{sys.argv[1]}", brokers=1, properties=PROPERTIES)
    try:
        target.start()
        asyncio.run(play(target))
    finally:
        target.stop()


if __name__ == "__main__":
    main()
