"""A real broker with a listener for each way to log in, a token endpoint, and key stores."""

import base64
import contextlib
import http.server
import json
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from fixtures.interface.target import Target, TargetOptions
from fixtures.machine.java import find_java
from fixtures.machine.loops import run_blocking
from fixtures.targets import DEFAULT_TARGET, open_target
from tests.authorizer import scram_user

PASSWORD = "store-s3cret"  # noqa: S105
PLAIN_PASSWORD = "plain-s3cret"  # noqa: S105
CLIENT_SECRET = "client-s3cret"  # noqa: S105
SECRETS = (PASSWORD, PLAIN_PASSWORD, CLIENT_SECRET)
"""What must not be found in anything that a run leaves; SCRAM's passwords are drawn."""

LISTENERS = {
    "PLAIN": "SASL_SSL",
    "SCRAM": "SASL_PLAINTEXT",
    "SCRAMTLS": "SASL_SSL",
    "OAUTH": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
}
_LOGIN = "org.apache.kafka.common.security"
_BEARER = f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class TokenEndpoint:
    """Gives RS256 tokens for client credentials, and shows the key that signs them (RFC 7517)."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._respond(200, endpoint.keys())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                pair = f"client:{CLIENT_SECRET}".encode()
                wanted = f"Basic {base64.b64encode(pair).decode()}"
                if self.headers["Authorization"] != wanted:
                    return self._respond(401, {"error": "invalid_client"})
                return self._respond(200, {"access_token": endpoint.token(), "expires_in": 300})

            def _respond(self, code: int, body: object) -> None:
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def keys(self) -> dict[str, object]:
        numbers = self._key.public_key().public_numbers()
        shown = {name: _base64(value.to_bytes((value.bit_length() + 7) // 8)) for name, value in
                 (("n", numbers.n), ("e", numbers.e))}  # fmt: skip
        return {"keys": [{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", **shown}]}

    def token(self, lasts: float = 300.0, subject: str = "client") -> str:
        now = time.time()
        head = {"alg": "RS256", "typ": "JWT", "kid": "k"}
        claims = {
            "sub": subject,
            "iss": self.url,
            "aud": "shareproof",
            "iat": int(now - 400),
            "exp": int(now + lasts),
            "scope": "kafka",
        }
        text = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_base64(signature)}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    target: Target
    endpoint: TokenEndpoint
    files: Mapping[str, Path]
    secrets: tuple[str, ...]

    def write(self, name: str, **changed: str) -> Path:
        wanted = {key.replace("_", "."): value for key, value in changed.items()}
        lines = [
            line
            for line in self.files[name].read_text().splitlines()
            if line.partition("=")[0] not in wanted
        ]
        lines += [f"{key}={value}" for key, value in wanted.items()]
        file = self.files[name].with_name(f"{name}-{len(list(self.files[name].parent.iterdir()))}")
        file.write_text("\n".join(lines))
        return file


@contextlib.contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    endpoint = TokenEndpoint()
    _make_stores(folder)
    target = open_target(
        DEFAULT_TARGET,
        TargetOptions(
            properties=_broker_properties(folder, endpoint),
            listeners=LISTENERS,
            jvm=(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint.url}/keys",),
        ),
    )
    try:
        target.start()
        passwords = {
            mechanism: run_blocking(
                scram_user(target, "SCRAM", f"user{mechanism[-3:]}", mechanism)
            ).password
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        }
        files = _client_files(folder, target, endpoint, passwords)
        yield Secured(
            target=target, endpoint=endpoint, files=files, secrets=(*SECRETS, *passwords.values())
        )
    finally:
        target.stop()
        endpoint.close()


def _make_stores(folder: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    broker, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("client@example.org")
    elsewhere = authority.issue_cert("elsewhere.example.org")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    stranger.cert_pem.write_to_path(str(folder / "stranger.pem"))
    for name, made in (("broker", broker), ("client", client), ("elsewhere", elsewhere)):
        key = serialization.load_pem_private_key(made.private_key_pem.bytes(), password=None)
        readable = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain = b"".join(part.bytes() for part in made.cert_chain_pems)
        (folder / f"{name}.pem").write_bytes(readable + chain)
        sealed = pkcs12.serialize_key_and_certificates(
            b"key",
            key,  # type: ignore[arg-type]
            x509.load_pem_x509_certificate(chain),
            None,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
        (folder / f"{name}.p12").write_bytes(sealed)
    _keytool("-importcert", "-file", str(folder / "ca.pem"), "-alias", "ca",
             "-keystore", str(folder / "trust.jks"), "-storetype", "JKS")  # fmt: skip
    _keytool("-importcert", "-file", str(folder / "ca.pem"), "-alias", "ca",
             "-keystore", str(folder / "trust.p12"), "-storetype", "PKCS12")  # fmt: skip
    _keytool("-importkeystore", "-srckeystore", str(folder / "client.p12"), "-srcstoretype",
             "PKCS12", "-srcstorepass:env", "STORE", "-destkeystore", str(folder / "client.jks"),
             "-deststoretype", "JKS", "-deststorepass:env", "STORE", own=False)  # fmt: skip


def _keytool(*words: str, own: bool = True) -> None:
    keytool = find_java().path.resolve().with_name("keytool")
    passed = ("-storepass:env", "STORE") if own else ()
    subprocess.run(
        [str(keytool), *words, *passed, "-noprompt"],
        env={"STORE": PASSWORD},
        check=True,
        capture_output=True,
    )


def _broker_properties(folder: Path, endpoint: TokenEndpoint) -> dict[str, str]:
    oauth = "listener.name.oauth.oauthbearer.sasl"
    validator = f"{_LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    scram = f"{_LOGIN}.scram.ScramLoginModule required;"
    plain = f'{_LOGIN}.plain.PlainLoginModule required user_plain="{PLAIN_PASSWORD}";'
    properties = {
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": plain,
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url": f"{endpoint.url}/keys",
        "listener.name.oauth.sasl.oauthbearer.expected.audience": "shareproof",
        "listener.name.oauth.sasl.oauthbearer.expected.issuer": endpoint.url,
        f"{oauth}.jaas.config": f"{_BEARER};",
        f"{oauth}.server.callback.handler.class": validator,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": str(folder / "ca.pem"),
    }
    for listener in ("scram", "scramtls"):
        prefix = f"listener.name.{listener}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = "SCRAM-SHA-256,SCRAM-SHA-512"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            properties[f"{prefix}.{mechanism}.sasl.jaas.config"] = scram
    for listener in (name.lower() for name, kind in LISTENERS.items() if kind.endswith("SSL")):
        properties[f"listener.name.{listener}.ssl.keystore.type"] = "PEM"
        properties[f"listener.name.{listener}.ssl.keystore.location"] = str(folder / "broker.pem")
    return properties


def _client_files(
    folder: Path, target: Target, endpoint: TokenEndpoint, passwords: Mapping[str, str]
) -> dict[str, Path]:
    def store(kind: str, name: str, type_: str = "", password: str = PASSWORD) -> dict[str, str]:
        settings = {"type": type_, "location": str(folder / name), "password": password}
        return {f"ssl.{kind}store.{key}": value for key, value in settings.items() if value}

    def login(mechanism: str, module: str = "", **words: str) -> dict[str, str]:
        given = "".join(f' {key}="{value}"' for key, value in words.items())
        jaas = {"sasl.jaas.config": f"{_LOGIN}.{module} required{given};"} if module else {}
        return {"sasl.mechanism": mechanism, **jaas}

    def scram(mechanism: str) -> dict[str, str]:
        user = {"username": f"user{mechanism[-3:]}", "password": passwords[mechanism]}
        return login(mechanism, "scram.ScramLoginModule", **user)

    jks, p12 = store("trust", "trust.jks"), store("trust", "trust.p12", "PKCS12")
    pem = store("trust", "ca.pem", "PEM", password="")
    own_pem = store("key", "client.pem", "PEM", password="")
    plain = login("PLAIN", "plain.PlainLoginModule", username="plain", password=PLAIN_PASSWORD)
    secret = {"clientId": "client", "clientSecret": CLIENT_SECRET}
    client = login("OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", **secret)
    tokens = "sasl.oauthbearer.token.endpoint.url"
    (folder / "token").write_text(endpoint.token(3600))
    ways = {
        "plain": ("PLAIN", {**plain, **jks}),
        "scram-256": ("SCRAM", scram("SCRAM-SHA-256")),
        "scram-512": ("SCRAMTLS", {**scram("SCRAM-SHA-512"), **p12}),
        "oauth": ("OAUTH", {**client, tokens: f"{endpoint.url}/token"}),
        "oauth-static": ("OAUTH", {**login("OAUTHBEARER"), tokens: f"file://{folder / 'token'}"}),
        "tls": ("TLS", pem),
        "mutual-pem": ("MUTUAL", {**pem, **own_pem}),
        "mutual-p12": ("MUTUAL", {**p12, **store("key", "client.p12", "PKCS12")}),
        "mutual-jks": ("MUTUAL", {**jks, **store("key", "client.jks")}),
    }
    files = {}
    for name, (listener, values) in ways.items():
        where = ",".join(target.info.listeners[listener])
        lines = {"bootstrap.servers": where, "security.protocol": LISTENERS[listener], **values}
        files[name] = folder / f"{name}.properties"
        files[name].write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return files
