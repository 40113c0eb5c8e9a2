"""Composes invariants into queries: those over one relation are asked in one pass over it."""

from __future__ import annotations

from collections.abc import Sequence

from reports.analysis.relations import Relation
from reports.analysis.rules import Invariant

OFFSET_BITS = 44
"""Where a log and an offset are one number. Beyond these, witnesses take a pass of their own."""


def asked(source: str, rules: Sequence[Invariant], *more: str) -> str:
    """Return the query for what each row says to each rule: ``xN`` a case, ``bN`` a breach of it.

    Args:
        source: what to ask: the name of the relation that all these rules are over.
        rules: N is a rule's place in these.
        more: expressions that are to be in the rows, too.
    """
    questions = [*more]
    for number, rule in enumerate(rules):
        cases = f"({rule.cases})"
        questions.append(f"{cases} AS x{number}, {cases} AND ({rule.breach}) AS b{number}")
    return f"SELECT {', '.join(questions)} FROM {source}"  # noqa: S608 - our own declarations


def counts(rules: Sequence[Invariant]) -> str:
    """Return the query for one row with the cases and the breaches of rules over one relation."""
    (relation,) = {rule.over for rule in rules}
    columns = [f"count_if(x{n}) AS x{n}, count_if(b{n}) AS b{n}" for n in range(len(rules))]
    return f"SELECT {', '.join(columns)} FROM ({asked(relation.name, rules)})"  # noqa: S608


def patterns(rules: Sequence[Invariant]) -> str:
    """Return the query for what there is to tell apart in a relation of records.

    It has a row for each set of rules that some records put to the test ("cases") and of those
    that they break ("breaks"), a bit for each rule: how many records, the first, and the last.
    There are few such sets, and counting them is cheaper than two counts for every rule.
    """
    (relation,) = {rule.over for rule in rules}
    bits = {
        name: " + ".join(
            f"CASE WHEN {letter}{number} THEN {1 << number}L ELSE 0L END"
            for number in range(len(rules))
        )
        for name, letter in (("cases", "x"), ("breaks", "b"))
    }
    marked = f"""
        SELECT {bits["cases"]} AS cases, {bits["breaks"]} AS breaks,
          shiftleft(CAST(log AS BIGINT), {OFFSET_BITS}) + offset AS place
        FROM ({asked(relation.name, rules, "log", "offset")})
    """  # noqa: S608 - our own declarations
    return f"""
        SELECT cases, breaks, count(*) AS records, min(place) AS first, max(place) AS last
        FROM ({marked})
        GROUP BY cases, breaks
    """  # noqa: S608


def breaches(source: Relation | str, rules: Sequence[Invariant]) -> str:
    """Return the query for what breaks rules over one relation, a row for each rule and breach."""
    name = source if isinstance(source, str) else source.name
    told = ", ".join(
        f"CASE WHEN ({rule.cases}) AND ({rule.breach}) THEN {_witness(rule)} END" for rule in rules
    )
    # One row for all rules, so that the relation is worked out once.
    each = f"SELECT explode(array({told})) AS hit FROM {name}"  # noqa: S608 - our own declarations
    return f"SELECT hit.* FROM ({each}) WHERE hit IS NOT NULL"  # noqa: S608


def place(rule: Invariant) -> str:
    """Return the expression for where a case is: the share-partition, or the request if none."""
    return f"coalesce({rule.share_partition}, {rule.offset})"


def _witness(rule: Invariant) -> str:
    where = f"{rule.share_partition} AS share_partition, {rule.log} AS log, {rule.offset} AS offset"
    when = f"{rule.since} AS since, {rule.until} AS until"
    return f"struct('{rule.id}' AS rule, {where}, {when}, {rule.detail} AS detail)"
