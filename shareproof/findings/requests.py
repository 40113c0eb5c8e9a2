"""A request that gets no answer, and what waits behind it."""

from typing import Any

from fixtures.clients.cluster import Cluster
from fixtures.wire.connection import CallTimeout, Connection
from fixtures.wire.errors import error_name
from fixtures.wire.schema import Schemas
from fixtures.wire.security import Security
from shareproof.findings.program import Run, say

LISTENER, PASSWORD = "USERS", "finding"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.users.plain.sasl.jaas.config": f'{MODULE} required user_nobody="{PASSWORD}";',
}
PATIENCE = 10.0  # seconds without a response; the others take milliseconds


async def ask(connection: Connection, api: str, **body: Any) -> bool:
    try:
        response = await connection.call(api, timeout=PATIENCE, **body)
    except CallTimeout:
        say(f"  {api}: no response within {PATIENCE:g} s")
        return False
    say(f"  {api}: a response, error {error_name(getattr(response, 'error_code', 0))}")
    return True


async def answered(cluster: Cluster, users: list[str] | None) -> tuple[bool, bool]:
    say("users", users)
    node = min(cluster.brokers)
    asked, other = await cluster.dial(node), await cluster.dial(node)
    first = await ask(asked, "DescribeUserScramCredentials", users=users)
    say("  the same connection:")
    behind = await ask(asked, "Metadata", topics=[])
    say("  another connection:")
    await ask(other, "Metadata", topics=[])
    return first, behind


async def unanswered_refusal(run: Run) -> bool:
    """A refusal that never comes, and what waits behind it on the connection: finding 070.

    Exit code 1 if the second request gets no response, nor what follows on its connection.
    """
    nobody = Security(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", user="nobody", password=PASSWORD
    )
    info = run.target.info.at(LISTENER, nobody)
    async with Cluster(info, schemas=Schemas.from_jar(info.schema_jar)) as cluster:
        await answered(cluster, [])
        return await answered(cluster, None) == (False, False)
