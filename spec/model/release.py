"""What differs between releases of Kafka, as values with reasons: no code asks for versions.

A judge for a broker of another make starts from the release it claims to be and replaces what it
does otherwise: every field is a freedom or a duty of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spec.model.table import Event
from spec.releases import line_of, lines, newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    name: str
    # 4.1 takes the count of a delivery back when the session ends without an acknowledgement; 4.2
    # counts it, so that a crashing client cannot keep a record alive (KAFKA-19972).
    close_uncounted: bool
    # Since 4.2 a record near its limit comes in ever smaller batches and alone on its last
    # attempt, so that one poison record costs only itself (KAFKA-17541).
    throttling: bool
    record_limit: bool  # ShareFetch v2 (4.2) has the acquire mode record_limit (KIP-1206)
    renewal: bool  # ShareFetch and ShareAcknowledge v2 (4.2) have RENEW (KIP-1222)
    renewal_switch: bool  # share.renew.acknowledge.enable exists since 4.3 (KIP-1240)
    # Delivery and in-flight limits per group exist since 4.3 (KIP-1240); before, they are the
    # broker's and change with a restart.
    group_limits: bool
    dead_letters: bool  # Dead letters and ARCHIVING came with share.version 2 in 4.4 (KIP-1191)
    complete_count: bool  # Durable state counts terminal records since 4.2, for the lag (KIP-1226)
    # Since 4.4 the share coordinator keeps the highest start offset; before, a write that was
    # overtaken could take it back.
    start_only_forward: bool
    negative_epochs_refused: bool  # Since 4.4 a negative epoch in a state RPC is INVALID_REQUEST
    # In 4.3.1 alone a Read with leader epoch -1 is served; before it is fenced, in 4.4 it is
    # refused as invalid.
    read_any_epoch: bool
    # In 4.1 a Write could raise the stored epochs; since 4.2 only Read and Initialize do
    # (KAFKA-19456).
    write_raises_epochs: bool

    @property
    def close_event(self) -> Event:
        return Event.CLOSE_UNCOUNTED if self.close_uncounted else Event.CLOSE

    @property
    def highest_ack_type(self) -> int:
        """The highest valid acknowledge type byte: 4 is RENEW."""
        return 4 if self.renewal else 3


RELEASES: Mapping[str, Release] = {
    name: Release(name=name, **line.behaviour) for name, line in lines().items()
}
NEWEST = RELEASES[newest().name]


def release_of(version: str) -> Release:
    return RELEASES[line_of(version).name]
