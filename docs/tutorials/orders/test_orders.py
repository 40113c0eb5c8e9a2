"""Tests of orders.py: pytest -p shareproof.testing --share-target reference."""

import sys
from pathlib import Path

import pytest

ORDERS = [sys.executable, str(Path(__file__).with_name("orders.py"))]


@pytest.fixture
def orders(share_cluster):
    queue = share_cluster.queue([b'{"id": 1}', b"no JSON", b'{"id": 2}'])
    with queue.running(ORDERS):
        yield queue


def test_orders_are_accepted_and_the_rest_is_rejected(orders):
    orders.wait()
    assert (orders.accepted, orders.rejected) == ([0, 2], [1])


def test_it_goes_on_when_the_leader_moves(orders, chaos):
    orders.wait()
    chaos.move_leader(orders)
    orders.produce([b'{"id": 3}'])
    orders.wait()
    assert orders.accepted == [0, 2, 3]


def test_nothing_is_lost_with_a_share_session(hostile_broker):
    hostile_broker.step(on="ShareFetch", skip=1, do="error", code="SHARE_SESSION_NOT_FOUND")
    queue = hostile_broker.queue([b'{"id": 1}'])
    with queue.running(ORDERS):
        queue.wait()
