"""What nearly every check imports: clients of the wire, the check's world, judging and waiting."""

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pytest

from fixtures.clients.admin import BROKER_RESOURCE, EARLIEST, GROUP_RESOURCE, TOPIC_RESOURCE
from fixtures.clients.cluster import (
    RETRIABLE,
    SHARE,
    WITHIN,
    Topic,
    attempts,
    eventually,
    gather_all,
    paced,
    require_ok,
)
from fixtures.clients.member import *
from fixtures.clients.transactions import TransactionalProducer
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.frame import Transcript
from fixtures.wire.records import Record, encode_batch
from fixtures.wire.state_records import partition_of, share_key, wire_batches
from spec.configs import Config, Scope
from spec.model.durable import StateBatch
from spec.verdict import OutOfReach, Undecided, Violation
from suites.broker.acknowledgements import *
from suites.broker.check import *
from suites.broker.deadletters import *
from suites.broker.env import *
from suites.broker.groups import *
from suites.broker.leaders import *
from suites.broker.logs import *
from suites.broker.many import *
from suites.broker.settings import *
from suites.broker.state import *
from suites.broker.timing import *
from suites.judge import Judge
from suites.options import RunOptions
