"""kafka-share-groups.sh by way of TLS."""

from fixtures.clients.tools import SHARE_GROUPS, Tools
from suites.broker.kit import *
from suites.broker.secure.realm import BARE_TLS, Realm

PATIENCE = 120.0  # Seconds that the tools may take together.


@check("ADM-41", timeout=400)
async def test_by_tls(realm: Realm, judge: Judge) -> None:
    env = realm.env
    tools = await Tools.of(realm.entrance(BARE_TLS))
    queue, member = await env.with_member()

    asked = asyncio.gather(
        tools.run(SHARE_GROUPS, "--list"),
        tools.run(SHARE_GROUPS, "--describe", "--group", queue.group, "--members"),
    )
    # A tool may take longer than a session: the member must not fall silent meanwhile.
    await beating([member], asked.done, within=PATIENCE)
    lists, who = await asked
    if failed := [line for run in (lists, who) for line in run.lines if line.startswith("Error")]:
        raise Undecided(f"a tool did not reach the brokers: {failed}")

    judge.holds(queue.group in lists.lines, f"groups listed by {tools.version}: {lists}")
    seen = [row["CONSUMER-ID"] for row in who.table()]
    judge.equal([member.member_id], seen, "members described")
