"""One cluster with an authorizer, for all checks of this folder, one after the other.

On somebody's cluster the users are those that ``--second-config`` lets in.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random

import pytest

from fixtures.interface.capability import Capability
from fixtures.interface.credentials import read_credentials
from fixtures.interface.info import ClusterInfo
from fixtures.targets import Target, TargetOptions
from fixtures.targets.config import Certificates, make_certificates
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import OutOfReach
from suites import clusters
from suites.broker.env import Env, open_env
from suites.broker.secure.realm import (
    LISTENERS,
    NO_SECOND,
    GuestRealm,
    Realm,
    at_home,
    broker_properties,
)
from suites.judge import OBSERVED, PATIENCE
from suites.options import RunOptions


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")
def stage(run_options: RunOptions, certificates: Certificates) -> Iterator[Target | None]:
    """A broker with an authorizer and with listeners for TLS and SASL; None where one is given."""
    if Capability.OWN_CLUSTER not in run_options.offers:
        if not run_options.second_config:
            raise OutOfReach(NO_SECOND)
        yield None
        return
    wanted = TargetOptions(properties=broker_properties(certificates.keystore), listeners=LISTENERS)
    with clusters.own_cluster(run_options, wanted, files=True) as target:
        yield target


@pytest.fixture(scope="package")
def ground(request: pytest.FixtureRequest, stage: Target | None) -> tuple[ClusterInfo, Schemas]:
    """The stage's cluster, and the message definitions of its release, read once."""
    info: ClusterInfo = stage.info if stage else request.getfixturevalue("cluster_info")
    return info, Schemas.from_jar(info.schema_jar)


@pytest.fixture
async def env(
    request: pytest.FixtureRequest,
    stage: Target | None,
    ground: tuple[ClusterInfo, Schemas],
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Env]:
    """The stage's cluster as a super user sees it."""
    info, schemas = ground
    async with (open_env if stage else at_home)(info, rng, transcripts, schemas) as env:
        request.node.stash[PATIENCE] = env.bounds.patience
        request.node.stash[OBSERVED] = True
        yield env
        if not stage:
            await env.disband()


@pytest.fixture
async def realm(
    run_options: RunOptions,
    env: Env,
    stage: Target | None,
    certificates: Certificates,
    transcripts: list[Transcript],
) -> AsyncIterator[Realm]:
    async with AsyncExitStack() as stack:
        if stage:
            yield Realm(env, stage.info, str(certificates.ca), stack)
            return
        second = read_credentials(run_options.second_config, "--second-config")
        where = second.bootstrap or env.cluster.info.bootstrap
        info = replace(env.cluster.info, bootstrap=where, security=second.security)
        realm = GuestRealm(env, info, stack)
        transcripts.append(realm.transcript)
        yield realm
        await realm.leave()
