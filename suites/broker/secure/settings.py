"""How the brokers of this stage are set up: an authorizer, and a listener for each way to come in.

The usual client listener stays as it is, and whoever comes by it is a super user: it is for setting
up and for looking. The checks themselves come by the listeners below, as users with a name.
"""

from __future__ import annotations

from pathlib import Path

SECURED, TLS, BARE_TLS, RENEWED = "SECURED", "TLS", "BARE_TLS", "RENEWED"

LISTENERS = {SECURED: "SASL_PLAINTEXT", TLS: "SASL_SSL", BARE_TLS: "SSL", RENEWED: "SASL_PLAINTEXT"}

LOGIN_LASTS = 2.5
"""Seconds after which a login at ``RENEWED`` has to be renewed; a broker wants one in between."""

PLAIN_USER, PLAIN_PASSWORD = "plain", "plain-secret"
"""The one user of mechanism PLAIN: its users stand in the broker's own configuration."""

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{PLAIN_USER}="{PLAIN_PASSWORD}";'
)
_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


def broker_properties(keystore: Path) -> dict[str, str]:
    """Return the properties of the stage's brokers."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The brokers talk to each other without names, too.
        "super.users": "User:ANONYMOUS",
        f"listener.name.{RENEWED.lower()}.connections.max.reauth.ms": str(int(LOGIN_LASTS * 1000)),
    }
    for listener, protocol in LISTENERS.items():
        prefix = f"listener.name.{listener.lower()}"
        if protocol.startswith("SASL_"):
            properties |= _sasl(prefix)
        if protocol.endswith("SSL"):
            properties |= {
                f"{prefix}.ssl.keystore.type": "PEM",
                f"{prefix}.ssl.keystore.location": str(keystore),
            }
    return properties


def _sasl(prefix: str) -> dict[str, str]:
    modules = {
        f"{prefix}.{mechanism.lower()}.sasl.jaas.config": _PLAIN if mechanism == "PLAIN" else _SCRAM
        for mechanism in _MECHANISMS
    }
    return {f"{prefix}.sasl.enabled.mechanisms": ",".join(_MECHANISMS), **modules}
