"""Composes invariants into queries: those over one relation are asked in one pass over it."""

from collections.abc import Iterable, Sequence

from reports.analysis.relations import Relation
from reports.analysis.rules import Invariant

OFFSET_BITS = 44
"""Where a log and an offset are one number. Beyond these, witnesses take a pass of their own."""


def asked(source: str, rules: Sequence[Invariant], *more: str) -> str:
    """Return the query for what each row says to each rule: ``xN`` a case, ``bN`` a breach of it.

    N is a rule's place in ``rules``, which are all over ``source``; ``more`` are expressions that
    are to be in the rows, too.
    """
    questions = [*more]
    for number, rule in enumerate(rules):
        cases = f"({rule.cases})"
        questions.append(f"{cases} AS x{number}, {cases} AND ({rule.breach}) AS b{number}")
    return f"SELECT {', '.join(questions)} FROM {source}"  # noqa: S608 - our own declarations


def excuse_bits(rules: Sequence[Invariant]) -> list[tuple[str, str, str]]:
    """Return rule, reason and expression of each excuse; a case has the first that is true."""
    found = []
    for rule in rules:
        before = f"({rule.cases})"
        for reason, when in rule.excuses:
            found.append((rule.id, reason, f"({when}) AND NOT coalesce({before}, false)"))
            before = f"{before} OR ({when})"
    return found


def counts(rules: Sequence[Invariant]) -> str:
    (relation,) = {rule.over for rule in rules}
    columns = [f"count_if(x{n}) AS x{n}, count_if(b{n}) AS b{n}" for n in range(len(rules))]
    rows = asked(relation.name, rules, "run")
    return f"SELECT {', '.join([*columns, 'run'])} FROM ({rows}) GROUP BY run"  # noqa: S608


def patterns(rules: Sequence[Invariant]) -> str:
    """Return the query for what there is to tell apart in a relation of records.

    It has for each run a row for each set of rules that some records put to the test ("cases") and
    of those that they break ("breaks"), a bit for each rule, and of excuses: how many records, the
    first, the last.
    There are few such sets, and counting them is cheaper than two counts for every rule.
    """
    (relation,) = {rule.over for rule in rules}
    excuses = [f"{when} AS e{number}" for number, (_, _, when) in enumerate(excuse_bits(rules))]
    bits = {
        name: " + ".join(
            f"CASE WHEN {letter}{number} THEN {1 << number}L ELSE 0L END" for number in range(size)
        )
        or "0L"
        for name, letter, size in (
            ("cases", "x", len(rules)),
            ("breaks", "b", len(rules)),
            ("excused", "e", len(excuses)),
        )
    }
    marked = f"""
        SELECT run, {", ".join(f"{bit} AS {name}" for name, bit in bits.items())},
          shiftleft(CAST(log AS BIGINT), {OFFSET_BITS}) + offset AS place
        FROM ({asked(relation.name, rules, "run", "log", "offset", *excuses)})
    """  # noqa: S608 - our own declarations
    return f"""
        SELECT run, cases, breaks, excused,
          count(*) AS records, min(place) AS first, max(place) AS last
        FROM ({marked})
        GROUP BY run, cases, breaks, excused
    """  # noqa: S608


def breaches(source: Relation | str, rules: Sequence[Invariant], *more: str) -> str:
    """Return the query for each breach of rules over one relation, with ``more`` columns."""
    name = source if isinstance(source, str) else source.name
    told = ", ".join(
        f"CASE WHEN ({rule.cases}) AND ({rule.breach}) THEN {_witness(rule)} END" for rule in rules
    )
    # One row for all rules, so that the relation is worked out once.
    also = "".join(f", {column}" for column in more)
    each = f"SELECT explode(array({told})) AS hit{also} FROM {name}"  # noqa: S608 - our own names
    return f"SELECT hit.*{also} FROM ({each}) WHERE hit IS NOT NULL"  # noqa: S608


def place(rule: Invariant) -> str:
    return f"coalesce({rule.share_partition}, {rule.offset})"


def _witness(rule: Invariant) -> str:
    where = f"{rule.share_partition} AS share_partition, {rule.log} AS log, {rule.offset} AS offset"
    when = f"{rule.since} AS since, {rule.until} AS until"
    return f"struct('{rule.id}' AS rule, {where}, {when}, {rule.detail} AS detail)"


def at_places(places: Iterable[tuple[int, int, int]]) -> str:
    """Return the condition for records at some runs, logs and offsets.

    However many there are, a row is looked up once. What is said of runs, logs and offsets alone
    leads to files and pages, so that few others are read.
    """
    known = sorted(set(places))
    if not known:
        return "false"
    parts = zip(("run", "log", "offset"), zip(*known, strict=True), strict=True)
    apart = [f"{name} IN ({_listed(sorted(set(some)))})" for name, some in parts]
    keys = _listed(f"'{run} {log} {offset}'" for run, log, offset in known)
    return f"{' AND '.join(apart)} AND concat_ws(' ', run, log, offset) IN ({keys})"


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def by_run(expressions: Sequence[str], first: int = 0) -> str:
    """Return the expression that is another one in each run, found by halving their number."""
    if len(set(expressions)) == 1:
        return expressions[0]
    half = len(expressions) // 2
    low, high = by_run(expressions[:half], first), by_run(expressions[half:], first + half)
    return f"CASE WHEN run < {first + half} THEN {low} ELSE {high} END"
