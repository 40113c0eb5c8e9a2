"""What makes a test a check: the rules that it judges, and all that a runner has to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from suites.broker.situations import Check, in_situations

Names = str | Sequence[str]


def check(
    *rules: str,
    fast: bool = False,
    feature: Names = (),
    needs: Names = (),
    crossed: Names = (),
    meets: Names = (),
    solo: Mapping[str, object] | None = None,
    timeout: float | None = None,
    moves: bool = False,
    draft: str = "",
) -> Callable[[Check], Check]:
    """Say which rules a check judges.

    Args:
        *rules: their ids. One rule is judged by ``judge.equal``, several by ``judge[rule].equal``.
        fast: whether it takes less than about two seconds, and so is part of the ``--fast`` subset.
        feature: what it needs that a profile may declare absent.
        needs: what it needs of the client under test; ``a|b`` needs one of them.
        crossed: set-ups in which it is played again, see :mod:`suites.broker.situations`.
        meets: situations that it brings about itself.
        solo: broker properties of the cluster of its own that it needs, of one broker or as many
            as ``brokers`` says.
        timeout: seconds, if it needs more than the usual minute.
        moves: whether this check of a stage only moves leaders, and may do so on somebody's
            cluster.
        draft: why it is not trusted yet.
    """
    marks = [pytest.mark.requirement(*rules)]
    marks += [pytest.mark.feature(name) for name in _names(feature)]
    marks += [pytest.mark.needs(*_names(needs))] if needs else []
    marks += [pytest.mark.fast] if fast else []
    marks += [pytest.mark.solo(dict(solo))] if solo is not None else []
    marks += [pytest.mark.timeout(timeout)] if timeout else []
    marks += [pytest.mark.moves] if moves else []
    marks += [pytest.mark.draft(draft)] if draft else []

    def declare(function: Check) -> Check:
        if crossed or meets:
            function = in_situations(function, _names(crossed), _names(meets))
        for mark in marks:
            function = mark(function)
        return function

    return declare


def _names(given: Names) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given
