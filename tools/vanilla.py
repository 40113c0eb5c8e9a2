"""Run a command against Apache Kafka as it ships, as on a foreign cluster.

    python -m tools.vanilla -- shareproof broker --target external:{}
    python -m tools.vanilla --brokers 3 -- shareproof broker --target external:{} --hooks {hooks}
    python -m tools.vanilla --quota request_percentage=1 -- shareproof load --target external:{}

``{}`` stands for the brokers' addresses, separated by commas, and ``{hooks}`` for a file of
commands that break and mend them; they need curl. Quotas are those of every client that has none
of its own (KIP-546). The exit code is the command's.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fixtures.clients.cluster import Cluster
from fixtures.clients.users import set_quotas
from fixtures.interface.capability import HOOKS
from fixtures.interface.names import DEFAULT_VERSION
from fixtures.machine.loops import run_blocking
from fixtures.targets import Target, TargetOptions, open_target, started
from spec.verdict import Undecided


@contextlib.contextmanager
def hooks(target: Target) -> Iterator[Path]:
    class Verbs(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _, verb, node = self.path.split("/")
            broker = next(each for each in target.brokers if each.node_id == int(node))
            getattr(broker, verb)()
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Verbs) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        call = f"curl -sSf -X POST http://127.0.0.1:{server.server_port}"
        file = Path(folder, "hooks.toml")
        file.write_text("".join(f'{verb} = "{call}/{verb}/{{node}}"\n' for verb in HOOKS))
        try:
            yield file
        finally:
            server.shutdown()


async def hold_everybody_to(target: Target, quotas: Mapping[str, float]) -> None:
    async with Cluster(target.info) as cluster:
        try:
            await set_quotas(cluster, None, quotas, kind="client-id")
        except Undecided as error:
            raise SystemExit(str(error)) from None


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.vanilla",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--brokers", type=int, default=1, help="number of brokers: 1 or 3")
    parser.add_argument("--kafka", default=DEFAULT_VERSION, help="release of Kafka")
    parser.add_argument(
        "--quota",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="default quota of client ids; repeatable",
    )
    parser.add_argument("command", nargs="+", help="after --: the command and its arguments")
    options = parser.parse_args()
    with started(
        open_target(f"kafka:{options.kafka}", TargetOptions(brokers=options.brokers, shipped=True))
    ) as target:
        where = ",".join(target.info.bootstrap)
        if options.quota:
            quotas = dict(one.split("=") for one in options.quota)
            run_blocking(hold_everybody_to(target, {key: float(n) for key, n in quotas.items()}))
        with hooks(target) as file:
            words = [word.replace("{}", where) for word in options.command]
            command = [word.replace("{hooks}", str(file)) for word in words]
            began = time.monotonic()
            code = subprocess.run(command, check=False).returncode
        print(f"{time.monotonic() - began:.0f} s, exit code {code}", file=sys.stderr)
        return code


if __name__ == "__main__":
    sys.exit(main())
