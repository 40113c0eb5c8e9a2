"""Credentials as Kafka's users have them: files, stores, tokens, and a real broker for each way."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.interface.credentials import read_credentials
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import UsageFault
from fixtures.security import PropertiesFault, parse, parse_login
from fixtures.wire.connection import CallFailed, Connection
from fixtures.wire.schema import Schemas
from tests.release import cluster_info
from tests.secured import Secured, secured
from tests.shell import Shell, shareproof

JAAS = "org.apache.kafka.common.security"
MUTUAL = ("mutual-pem", "mutual-p12", "mutual-jks")
PLAIN = f'{JAAS}.plain.PlainLoginModule required username="u" password="hush";'


def test_properties_as_java_reads_them() -> None:
    text = """
# a comment
! another
a = 1
b:2
c 3
long = one, \\
       two
tab=\\t\\u00e9
key\\ with\\:both = x=y:z
empty
a=4
"""

    assert parse(text) == {
        "a": "4",
        "b": "2",
        "c": "3",
        "long": "one, two",
        "tab": "\té",
        "key with:both": "x=y:z",
        "empty": "",
    }


def test_values_from_the_environment() -> None:
    assert parse("p=a-${env:X}-${env:Y}", {"X": "1", "Y": "2"}) == {"p": "a-1-2"}
    with pytest.raises(PropertiesFault, match="p: the environment variable X is not set"):
        parse("p=${env:X}", {})


def test_jaas_entries() -> None:
    login = parse_login("a.b.ScramLoginModule required\n username='it''s' x=y password=\"p\\\"q\" ;"
                       .replace("it''s", "me"))  # fmt: skip
    assert login.module == "ScramLoginModule"
    assert login.options == {"username": "me", "x": "y", "password": 'p"q'}
    assert "p" not in repr(login).replace("ScramLoginModule", "").replace("Login(module=", "")
    for wrong in ("hush", 'M required password="hush', "M required hush;"):
        with pytest.raises(PropertiesFault) as fault:
            parse_login(wrong)
        assert "hush" not in str(fault.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sasl.mechansim=PLAIN", "sasl.mechansim: not understood"),
        ("securty.protocol=SSL", "securty.protocol: not understood"),
        ("ssl.cipher.suites=x", "ssl.cipher.suites: not understood"),
        ("security.protocol=SSL\nssl.enabled.protocols=TLSv1.1,TLSv1.2", "TLSv1.1 is none of"),
        ("security.protocol=TLS", "'TLS' is no security protocol"),
        ("security.protocol=SASL_SSL", "'' is no SASL mechanism"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", "'GSSAPI' is none of PLAIN"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"),
        (f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={PLAIN}",
         "needs ScramLoginModule, not PlainLoginModule"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
         f"sasl.jaas.config={JAAS}.plain.PlainLoginModule required;", "username and password"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "token.endpoint.url: give"),
        ("security.protocol=SSL\nssl.truststore.location=/nowhere", "/nowhere: No such file"),
        ("security.protocol=SSL\nssl.truststore.type=BKS\nssl.truststore.location=x", "'BKS' is"),
        ("security.protocol=SSL\nssl.keystore.key=x", "needs a private key"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_wrong_usage(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(UsageFault) as fault:
        read_credentials(file)
    assert complaint in str(fault.value)
    assert str(fault.value).startswith(f"--command-config {file}: ")
    assert "hush" not in str(fault.value)


def test_the_rest_of_an_applications_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=h:1\nsecurity.protocol=SSL\nssl.protocol=TLSv1.3\nacks=all\n"
        "ssl.enabled.protocols=TLSv1.2,TLSv1.3\nclient.dns.lookup=use_all_dns_ips\n"
        "session.timeout.ms=45000\nschema.registry.url=https://h\ngroup.id=g\n"
    )
    found = read_credentials(file)

    rest = ("acks", "client.dns.lookup", "group.id", "schema.registry.url", "session.timeout.ms")
    assert found.unused == rest
    context = found.security.context()
    assert context is not None
    assert context.minimum_version.name == "TLSv1_2"


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageFault, match="--second-config /nowhere: No such file"):
        read_credentials("/nowhere", "--second-config")


def test_secrets_do_not_travel(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN}"
    )
    security = read_credentials(file).security
    info = cluster_info(security=security)

    assert security.password == "hush"  # noqa: S105
    assert "hush" not in info.to_json() + repr(info) + str(security)
    assert ClusterInfo.from_json(info.to_json()) == info


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured")) as running:
        yield running


async def _greet(broker: Secured, file: Path) -> int:
    found = read_credentials(file)
    host, _, port = found.bootstrap[0].rpartition(":")
    schemas = Schemas.from_jar(broker.target.info.schema_jar)
    opened = await Connection.open(host, int(port), schemas=schemas, security=found.security)
    async with opened as connection:
        return len((await connection.call("Metadata", topics=[])).brokers)


@pytest.mark.parametrize(
    "way", ["plain", "scram-256", "scram-512", "oauth", "oauth-static", "tls", *MUTUAL]
)
async def test_a_real_broker_lets_us_in(broker: Secured, way: str) -> None:
    assert await _greet(broker, broker.files[way]) == 1


@pytest.mark.parametrize(
    ("way", "changed", "sentence"),
    [
        ("plain", {"sasl_jaas_config": PLAIN}, "SASL_AUTHENTICATION_FAILED"),
        ("scram-256",
         {"sasl_jaas_config": f'{JAAS}.scram.ScramLoginModule required username="user256" '
          'password="hush";'}, "SASL_AUTHENTICATION_FAILED"),
        ("oauth", {"sasl_jaas_config": f'{JAAS}.oauthbearer.OAuthBearerLoginModule required '
                   'clientId="client" clientSecret="hush";'}, "token endpoint refused: 401"),
        ("tls", {"ssl_truststore_location": "stranger.pem"}, "see ssl.truststore.location"),
        ("mutual-pem", {"ssl_keystore_location": ""}, ""),
    ],
)  # fmt: skip
async def test_a_real_broker_refuses_in_one_sentence(
    broker: Secured, way: str, changed: dict[str, str], sentence: str
) -> None:
    folder = broker.files[way].parent
    settings = {key: str(folder / value) if value.endswith(".pem") else value
            for key, value in changed.items()}  # fmt: skip
    with pytest.raises(CallFailed) as failed:
        await _greet(broker, broker.write(way, **settings))
    assert sentence in str(failed.value)
    assert "\n" not in str(failed.value)
    assert "hush" not in str(failed.value)


async def test_an_expired_token_is_refused(broker: Secured) -> None:
    folder = broker.files["oauth-static"].parent
    (folder / "expired").write_text(broker.endpoint.token(-100))
    url = {"sasl_oauthbearer_token_endpoint_url": f"file://{folder / 'expired'}"}
    with pytest.raises(CallFailed, match=r"token was refused|SASL_AUTHENTICATION_FAILED"):
        await _greet(broker, broker.write("oauth-static", **url))


async def test_a_wrong_host_name(broker: Secured) -> None:
    where = {
        "bootstrap_servers": broker.target.info.listeners["TLS"][0].replace(
            "127.0.0.1", "localhost"
        )
    }
    with pytest.raises(CallFailed, match=r"ssl\.endpoint\.identification\.algorithm"):
        await _greet(broker, broker.write("tls", **where))
    where["ssl_endpoint_identification_algorithm"] = ""
    assert await _greet(broker, broker.write("tls", **where)) == 1


def _left_no_secret(done: subprocess.CompletedProcess[str], broker: Secured, out: Path) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    written = [file for file in out.rglob("*") if file.is_file()]
    texts = [done.stdout, done.stderr, *(file.read_text(errors="replace") for file in written)]
    assert len(written) > 5
    assert [secret for secret in broker.secrets for text in texts if secret in text] == []


@pytest.mark.parametrize("way", ["scram-512", "oauth"])
def test_a_run_leaves_no_secret(broker: Secured, tmp_path: Path, way: str) -> None:
    file = broker.files[way]
    lines = file.read_text().splitlines()
    jaas_config = next(line for line in lines if line.startswith("sasl.jaas.config="))
    kept = [line for line in lines if line != jaas_config]
    (tmp_path / "client.properties").write_text(
        "\n".join([*kept, "sasl.jaas.config=${env:SHAREPROOF_TEST_JAAS}"])
    )
    out = tmp_path / "out"

    done = shareproof(
        *("broker", "--target", "external", "--only", "ACK-07", "--seed", "1", "--out", str(out)),
        *("--command-config", str(tmp_path / "client.properties")),
        environment={"SHAREPROOF_TEST_JAAS": jaas_config.partition("=")[2]},
    )

    _left_no_secret(done, broker, out)


LOAD = ("chaos", "--no-faults", "--no-judge", "--minutes", "0.1", "--rate", "50")
CLIENT = ("client", "--client", "model", "--only", "CLI-01,CLI-31", "--workers", "0")


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("scram-512", LOAD),
        *((way, CLIENT) for way in ("plain", "scram-256", "oauth", "mutual-p12")),
    ],
)
def test_chaos_runs_and_clients_leave_no_secret(
    broker: Secured, tmp_path: Path, way: str, words: tuple[str, ...]
) -> None:
    where = ("--target", "external", "--command-config", str(broker.files[way]))
    out = tmp_path / "out"
    _left_no_secret(shareproof(*words, *where, "--seed", "1", "--out", str(out)), broker, out)


def test_wrong_credentials_end_with_one_sentence(broker: Secured, tmp_path: Path) -> None:
    module = f"{JAAS}.scram.ScramLoginModule"
    wrong = f'{module} required username="user256" password="hush";'
    file = broker.write("scram-256", sasl_jaas_config=wrong)

    done = shareproof(
        *("broker", "--target", "external", "--only", "ACK-07", "--out", str(tmp_path / "out")),
        *("--command-config", str(file)),
    )

    assert done.returncode == 3, done.stdout + done.stderr
    assert "does not let us in" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "hush" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--target", "external"), "give addresses, or a --command-config"),
        (("--target", "kafka:4.4.0", "--command-config", "{file}"), "needs no credentials"),
        (("--target", "external", "--command-config", "{file}"), "bootstrap.servers is missing"),
        (("--target", "external:h:1", "--broker-option", "a=b"), "is running already"),
        (("--broker-option", "nonsense"), "--broker-option nonsense: give KEY=VALUE"),
        (("--target", "kafka:4.4.0", "--second-config", "{file}"), "needs no credentials"),
        (
            ("--target", "external:h:1", "--second-config", "/none"),
            "--second-config /none: No such",
        ),
        (("--target", "kafka:4.4.0", "--hooks", "{file}"), "only for an external cluster"),
        (("--target", "external:h:1", "--hooks", "{file}"), "--hooks {file}: Invalid value"),
    ],
)
def test_access_that_makes_no_sense(
    shell: Shell, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=PLAINTEXT")
    given = [word.format(file=file) for word in words]

    code, _, errors = shell("broker", *given, "--out", str(tmp_path / "out"))

    assert (code, sentence.format(file=file) in " ".join(errors.split())) == (2, True), errors
