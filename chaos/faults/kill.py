"""A broker is killed, as by a power cut: it hands nothing over."""

import signal
from collections.abc import Callable

from chaos.faults.outage import Outage
from chaos.faults.roles import for_each_role
from chaos.schedule import Resource
from fixtures.interface.capability import Capability
from fixtures.interface.handle import Handle


@for_each_role(
    "kill",
    "Kill {} with SIGKILL, and start it again.",
    *(Capability.SPARE_BROKER, Capability.KILL, Capability.START),
    lasts=(7.0, 11.0),
    takes={Resource.BROKER},
)
class Kill(Outage):
    """SIGKILL, and a start later on."""

    def go(self, broker: Handle) -> Callable[[], None]:
        """Kill it."""
        return broker.kill

    async def hit(self) -> str:
        """See how the process ended, and that nobody listens any more."""
        code = self.broker.exit_code
        if code not in {None, -signal.SIGKILL} or await self.world.answers(self.node):
            return ""
        how = "was killed by its hook" if code is None else f"ended by signal {-code}"
        return f"broker {self.node} {how}, nobody listens at its port"
