"""The lone broker: restarting it with other properties, raising and lowering its feature level."""

import asyncio
import contextlib
import functools

from fixtures.clients.cluster import RETRIABLE, eventually
from fixtures.clients.features import share_version
from fixtures.targets import Target
from fixtures.targets.broker import Broker
from fixtures.targets.metrics import Metrics, Sample
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode
from spec.verdict import OutOfReach
from suites.broker.env import Env, poll

FEATURE = "share.version"
_UPGRADE, _DOWNGRADE = 1, 2


class SingleBroker:
    """One broker that a check may change, and the check's own share of it. Nothing here judges."""

    def __init__(self, target: Target, env: Env, metrics: Metrics | None) -> None:
        self.target, self.env, self._metrics = target, env, metrics
        self._level: int | None = None
        self._text: str | None = None

    @property
    def broker(self) -> Broker:
        broker = self.target.brokers[0]
        assert isinstance(broker, Broker)
        return broker

    @property
    def node(self) -> int:
        return self.broker.node_id

    async def samples(self, bean: str) -> list[Sample]:
        if self._metrics is None:
            raise OutOfReach("the agent that shows a broker's metrics cannot be fetched")
        found = await asyncio.to_thread(self._metrics.read)
        return [sample for sample in found if sample.bean == bean]

    async def number(self, bean: str, attribute: str, **labels: str) -> float:
        """Return the sum of an attribute over all beans with these labels, 0 where there is none.

        A bean that counts something may appear with the first event.
        """
        tags = labels.items()
        found = await self.samples(bean)
        return sum(s.value for s in found if s.attribute == attribute and tags <= s.labels.items())

    async def until(self, expected: float, bean: str, attribute: str, **labels: str) -> float:
        """Return the number once it is the expected one, or what it still is after a while."""
        look = functools.partial(self.number, bean, attribute, **labels)
        return await poll(look, lambda seen: seen == expected, pause=0.1)

    async def restart(self, properties: dict[str, str]) -> None:
        file = self.broker.home / "server.properties"
        if self._text is None:
            self._text = file.read_text()
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        await self._again(self._text + lines)

    async def _again(self, text: str) -> None:
        # A kill keeps what was written, and is done in no time.
        await asyncio.to_thread(self.broker.kill)
        (self.broker.home / "server.properties").write_text(text)
        await asyncio.to_thread(self.broker.start)

    async def level(self) -> int:
        return await share_version(self.env.cluster)

    async def set_level(self, level: int) -> int:
        """Raise or lower share.version; return the error code, 0 once the broker goes by it."""
        before = await self.level()
        if self._level is None:
            self._level = before
        kind = _UPGRADE if level > before else _DOWNGRADE
        update = {"feature": FEATURE, "max_version_level": level, "upgrade_type": kind}

        async def updated() -> int | None:
            response = await (await self.env.cluster.any()).call(
                "UpdateFeatures", timeout_ms=15_000, feature_updates=[update]
            )
            inner = [result.error_code for result in getattr(response, "results", None) or []]
            code = next((code for code in [response.error_code, *inner] if code), 0)
            return None if code in RETRIABLE else code

        code = await eventually(f"a response to UpdateFeatures of {FEATURE}", updated)
        if code == ErrorCode.NONE:

            async def reached() -> bool | None:
                return True if await self.level() == level else None

            await eventually(f"{FEATURE} {level} on the broker", reached)
        return code

    async def mend(self) -> None:
        if self._text is not None:
            await self._again(self._text)
        if self._level is not None:
            with contextlib.suppress(CallFailed):
                if await self.level() != self._level:
                    await self.set_level(self._level)
