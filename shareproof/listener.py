"""A listener that speaks tier 1 and no more, to try the tutorial "certify your own implementation".

    python -m shareproof.listener [--port 19092]

It is the reference broker of this suite without administration. A topic is created, with one
partition, when a Metadata request names it, and groups have no configurations of their own.
"""

import argparse
import asyncio
import contextlib

from fixtures.machine.maven import clients_jar, coordinator_jar
from fixtures.reference.cluster import HANDLERS, Parts, ReferenceCluster
from fixtures.reference.handlers.metadata import Finding
from fixtures.reference.node import ApiMethod, Body, Call, RequestHandler, serves
from fixtures.wire.schema import Schemas
from spec.tiers import BESIDE, CONSUMER

VERSION = "4.4.0"


class ByName(Finding):
    @serves("Metadata")
    def metadata(self, call: Call) -> Body:
        for one in call.body.topics or ():
            if one.name and one.name not in self.state.topics:
                self.state.create_topic(one.name, [self.state.place(1)], {})
        return super().metadata(call)


def tier_1(handler: type[RequestHandler]) -> type[RequestHandler]:
    class Limited(handler):  # type: ignore[misc, valid-type]
        def by_api(self) -> dict[str, ApiMethod]:
            methods = super().by_api()
            return {api: methods[api] for api in methods if api in {*BESIDE, *CONSUMER}}

    return Limited


async def serve(port: int, parts: Parts) -> None:
    jar = clients_jar(VERSION)
    cluster = ReferenceCluster(
        Schemas.from_jar(jar), Schemas.from_jar(coordinator_jar(jar)), parts=parts
    )
    (address,) = await cluster.start(port)
    print(f"listening at {address}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await cluster.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=19092)
    options = parser.parse_args()
    handlers = tuple(tier_1(ByName if one is Finding else one) for one in HANDLERS)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, Parts(handlers=handlers)))
