"""Run a command with a container engine and with images that are made of this machine's files.

``python -m tools.containers shareproof chaos --target container:local/kafka:4.4.0 ...`` gives the
engine ``local/kafka:4.4.0`` and ``local/toxiproxy:local`` first. It is the user's own engine, or
one that is started for this command alone. Without a command the images stay in the user's engine.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence

import docker

from spec.verdict import EnvironmentFault
from tools.containers.dockerd import engine
from tools.containers.images import KAFKA, TOXIPROXY, provide


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.containers", description=__doc__)
    parser.add_argument("--kafka", action="append", metavar="VERSION", help="default: 4.4.0")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    try:
        with engine():
            client = docker.from_env()
            for image in (*(f"{KAFKA}:{one}" for one in options.kafka or ["4.4.0"]), TOXIPROXY):
                provide(client, image)
                print(f"{image}: {client.images.get(image).attrs['Size'] >> 20} MiB", flush=True)
            client.close()
            return subprocess.run(options.command, check=False).returncode if options.command else 0
    except (EnvironmentFault, ValueError) as fault:
        print(f"tools.containers: {fault}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
