"""kafka-share-groups.sh by way of TLS."""

from __future__ import annotations

import asyncio

import pytest

from fixtures.clients.tools import SHARE_GROUPS, Tools
from suites.broker.secure.realm import Realm
from suites.broker.secure.settings import BARE_TLS
from suites.judge import Judge


@pytest.mark.draft("not seen failing yet")
@pytest.mark.requirement("ADM-41")
@pytest.mark.timeout(150)
async def test_by_tls(realm: Realm, judge: Judge) -> None:
    """ADM-41: The tool lists and describes groups over a TLS listener as over any other."""
    share = realm.share
    tools = await Tools.of(realm.entrance(BARE_TLS))
    queue = await share.queue()
    member = await share.member(queue.group, queue.topic)

    lists, who = await asyncio.gather(
        tools.run(SHARE_GROUPS, "--list"),
        tools.run(SHARE_GROUPS, "--describe", "--group", queue.group, "--members"),
    )

    judge.holds("ADM-41", queue.group in lists.lines, f"groups listed by {tools.version}: {lists}")
    seen = [row["CONSUMER-ID"] for row in who.table()]
    judge.equal("ADM-41", [member.member_id], seen, "members described")
