"""A broker shuts down in order: it hands over what it leads, and then ends."""

from collections.abc import Callable

from chaos.faults.outage import Outage
from chaos.faults.roles import for_each_role
from chaos.schedule import Resource
from fixtures.interface.capability import Capability
from fixtures.interface.handle import Handle

_BY_SIGTERM = (None, 0, 143)
"""Exit codes; of a broker that is not ours there is none to see."""


@for_each_role(
    "stop",
    "Shut {} down cleanly, and start it again.",
    *(Capability.SPARE_BROKER, Capability.STOP, Capability.START),
    lasts=(3.0, 6.0),
    takes={Resource.BROKER},
)
class Stop(Outage):
    """SIGTERM, and a start later on."""

    def go(self, broker: Handle) -> Callable[[], None]:
        """Shut it down."""
        return broker.stop

    async def hit(self) -> str:
        """See how the process ended, and that nobody listens any more."""
        code = self.broker.exit_code
        if code not in _BY_SIGTERM or await self.world.answers(self.node):
            return ""
        how = "by its hook" if code is None else f"with exit code {code}"
        return f"broker {self.node} was shut down {how}, nobody listens at its port"
