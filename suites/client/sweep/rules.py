"""The rules of the sweep, judged by what the application did and what went over the wire."""

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Exchange
from suites.client.account import ACCOUNT, Account
from suites.client.sweep.application import BACK, TOLD, CaseRun
from suites.client.sweep.cases import Case
from suites.client.wire import Acked, acked, busiest, hasty
from suites.sweep import Finding

# The rules that every case is held against.
BEHIND, LOST, RATE, TOLD_OF, RECOVERS = "CLI-110", "CLI-111", "CLI-112", "CLI-113", "CLI-114"

# Requests of one API to one broker within a second.
#
# retry.backoff.ms is 100 ms by default, 80 ms with its jitter: 13 requests within a second. A
# client may have two reasons to ask, such as a retry and a poll.
MOST = 25

# Attempts in a row, each at once after the error before.
#
# reconnect.backoff.ms is 50 ms by default and doubles each time, so that the first few are quick.
ROW = 6
AT_ONCE = 0.05  # Seconds after an error in which nobody who waits sends again.


def judge(case: Case, run: CaseRun) -> list[Finding]:
    found = []
    for rule, look in _LOOKS.items():
        if run.met and (rule != TOLD_OF or case.owed):
            broken, witness = look(case, run)
            sentence = f"{case.name}: {broken}" if broken else ""
            met = len(run.met)
            found.append(Finding(rule=rule, broken=sentence, witness=witness, responses=met))
    return found


def accounted(name: str, made: Account) -> list[Finding]:
    broken = {
        one.rule: Finding(rule=one.rule, broken=f"{name}: {one.sentence}", witness=one.witness)
        for one in made.breaches
    }
    return [
        broken.get(rule) or Finding(rule=rule, responses=decided)
        for rule, decided in made.decided.items()
        if decided or rule in broken
    ]


# What is wrong, and the witness of it; empty where a rule holds.
Broken = tuple[str, tuple[str, ...]]
Look = Callable[[Case, CaseRun], Broken]
_FINE = ("", ())


def _behind(case: Case, run: CaseRun) -> Broken:
    """Nothing is accepted, rejected or called a gap but by the application."""
    wrong = [str(one) for one in acked(run.shared) if _unsaid(one, case, run)]
    said = f"{len(wrong)} acknowledgements that the application did not make"
    return (said, tuple(wrong[:3])) if wrong else _FINE


def _unsaid(one: Acked, case: Case, run: CaseRun) -> bool:
    if one.kind == AckType.ACCEPT:
        since = run.accepted.get((one.partition, one.offset))
        return since is None or one.by.sent < since
    if one.kind == AckType.GAP:
        return one.error == 0 and (one.partition, one.offset) in run.produced
    return one.kind == AckType.REJECT and not case.unreadable


def _lost(case: Case, run: CaseRun) -> Broken:
    """Every record reached the application, and what is reported as done is done."""
    never = sorted(run.produced - run.delivered)
    if never and run.recovered is not None and not case.unreadable:
        return f"never delivered, and gone: {never}", ()
    done = Counter((one.partition, one.offset) for one in acked(run.shared) if one.error == 0)
    fine = [one for one in run.settled if one.error is None]
    said = Counter((one.partition, offset) for one in fine for offset in one.offsets or ())
    if false := sorted(place for place, times in said.items() if times > done[place]):
        return "reported as done, and no response says so", (f"partition and offset: {false}",)
    return _FINE


def _rate(_case: Case, run: CaseRun) -> Broken:
    """Requests come at a bounded rate while the script runs."""
    asked: dict[tuple[str, int], list[Exchange]] = {}
    for one in run.exchanges:
        if run.began <= one.sent <= run.ended:
            asked.setdefault((one.api, one.node), []).append(one)
    for (api, node), mine in asked.items():
        most, row = busiest(mine), hasty(mine, AT_ONCE, _has_error)
        if most > MOST:
            return f"{most} {api} requests within a second to broker {node}, {MOST} at most", ()
        if row > ROW:
            return f"{row} {api} requests in a row without a pause, {ROW} at most", ()
    return _FINE


def _has_error(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(
            (name.endswith("error_code") and inner) or _has_error(inner)
            for name, inner in value.items()
        )
    return isinstance(value, list) and any(map(_has_error, value))


def _told(_case: Case, run: CaseRun) -> Broken:
    """The application is told of an error that does not pass by itself."""
    if any(at <= run.ended for at, _ in run.told):
        return _FINE
    return f"the application was told nothing within {TOLD:g} s", ()


def _recovers(_case: Case, run: CaseRun) -> Broken:
    """When the error is over everything is accepted."""
    if run.stuck:
        return run.stuck, ()
    if run.recovered is None:
        told = ", ".join(sorted({name for _, name in run.told})) or "nothing"
        return f"{BACK:g} s after its end: {run.left}", (f"the application was told {told}",)
    return _FINE


_LOOKS: Mapping[str, Look] = MappingProxyType(
    {BEHIND: _behind, LOST: _lost, RATE: _rate, TOLD_OF: _told, RECOVERS: _recovers}
)
RULES = (*_LOOKS, *ACCOUNT)  # The rules of the sweep.
