"""A broker is killed, as by a power cut: it hands nothing over."""

from __future__ import annotations

import signal
from collections.abc import Callable

from chaos.faults.outage import Outage, for_each_role
from fixtures.interface.handle import Handle


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


FAULTS = for_each_role("kill", "Kill {} with SIGKILL, and start it again.", Kill, (7.0, 11.0))
