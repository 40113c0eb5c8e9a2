"""A group's session timeout and a heartbeat interval that only the broker has: finding 044.

One broker whose heartbeat interval is 500 ms. The group's session timeout is compared with the
group's default interval instead.
"""

from fixtures.wire.errors import error_name
from tools.findings.program import Run

HEARTBEAT = 500
"""The broker's heartbeat interval in milliseconds."""


async def play(run: Run) -> bool:
    """Set one session timeout after the other; tell whether one above the interval is refused."""
    refused = False
    async with run.world() as share:
        for session in (500, 501, 4999, 5000, 5001):
            configs = {"share.session.timeout.ms": str(session)}
            answer = await share.admin.try_group_config(share.cluster.fresh_name("g"), configs)
            refused |= session > HEARTBEAT and bool(answer.error_code)
            print(session, error_name(answer.error_code), answer.error_message or "", flush=True)
    return refused
