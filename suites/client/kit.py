"""What nearly every check of a client imports: the harness, what the tap saw, and judging."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import pairwise

import pytest

from fixtures.clients.adapter import Adapter, AdapterDied, AdapterHang, Refused, Unsupported
from fixtures.clients.cluster import Topic, attempts, paced
from fixtures.clients.handle import Delivery, Handle, Settled
from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Exchange
from fixtures.wire.records import Record, encode_batch
from spec.adapter import Capability
from spec.verdict import OutOfReach, Undecided
from suites.broker.check import check
from suites.broker.env import Queue
from suites.client.harness import *
from suites.client.wire import *
from suites.judge import Judge
