"""A group's configuration changes while it works."""

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.clients.admin import GROUP_RESOURCE

_LOCK = "share.record.lock.duration.ms"


@fault(
    "change-lock-duration",
    "Change the lock duration of a group while locks are held.",
    takes={Resource.GROUP_CONFIG},
    relies_on={Resource.BROKER},
)
class OtherLocks(Injection):
    """Locks last half as long for a while."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.group = world.group(subject)
        self.usual = world.course.load.lock_ms

    async def inject(self) -> str:
        await self.world.admin.group_config(self.group, {_LOCK: str(self._half)})
        return f"{self.group}, locks of {self._half} ms instead of {self.usual}"

    @property
    def locks(self) -> tuple[str, int]:
        """A response that is made after a lock began says what holds by then."""
        return self.group, self._half

    @property
    def _half(self) -> int:
        return max(1000, self.usual // 2)

    async def hit(self) -> str:
        return await self._seen(self._half)

    async def heal(self) -> None:
        await self.world.admin.group_config(self.group, {_LOCK: str(self.usual)})

    async def healed(self) -> str:
        return await self._seen(self.usual)

    async def _seen(self, lock_ms: int) -> str:
        for node in self.world.nodes:
            shown = await self.world.admin.configs(GROUP_RESOURCE, self.group, node=node)
            if shown.get(_LOCK) != str(lock_ms):
                return ""
        return f"{_LOCK}={lock_ms} on every broker"
