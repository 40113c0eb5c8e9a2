"""One cluster with an authorizer, for all checks of this folder, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from random import Random

import pytest

from fixtures.targets import Target, TargetOptions
from fixtures.targets.certificates import Certificates, make_certificates
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from suites import clusters
from suites.broker.secure.realm import Realm
from suites.broker.secure.settings import LISTENERS, broker_properties
from suites.broker.share import Share, world
from suites.options import RunOptions


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """What the brokers of this stage show, and what their clients trust."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")
def stage(run_options: RunOptions, certificates: Certificates) -> Iterator[Target]:
    """A broker with an authorizer and with listeners for TLS and SASL."""
    wanted = TargetOptions(properties=broker_properties(certificates.keystore), listeners=LISTENERS)
    with clusters.own_cluster(run_options, wanted, files=True) as target:
        yield target


@pytest.fixture(scope="package")
def stage_schemas(stage: Target) -> Schemas:
    """The message definitions of the release under test, read once."""
    return Schemas.from_jar(stage.info.schema_jar)


@pytest.fixture
async def share(
    stage: Target, stage_schemas: Schemas, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Share]:
    """The stage's cluster as a super user sees it."""
    async with world(stage.info, rng, transcripts, stage_schemas) as share:
        yield share


@pytest.fixture
async def realm(share: Share, stage: Target, certificates: Certificates) -> AsyncIterator[Realm]:
    """Users of this check's own."""
    async with AsyncExitStack() as stack:
        yield Realm(share, stage.info, str(certificates.ca), stack)
