"""Relations: what invariants ask, each a query over the tables of a history and other relations.

A query names what it reads in braces, so that it can be composed with other inputs, such as a few
records of a table in place of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from string import Formatter

_BY_RUN = {"by_run": "run, ", "same_run": "d.run = p.run AND "}
"""Keys of queries over several runs, as they stand in braces in a query."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    name: str  # What others call it.
    # The query; ``{name}`` stands for a table of ``spec.history`` or another relation, ``{by_run}``
    # and ``{same_run}`` for keys that a query over a single run leaves out.
    sql: str
    uses: tuple[Relation, ...] = ()  # The relations that it reads; all else in braces are tables.
    # It has a row for each delivery or record, with ``log`` and ``offset``, over tables that are
    # laid out by these.
    by_record: bool = False
    # It reads the tables that are laid out by record; other relations are small.
    over_records: bool = False
    cached: bool = False  # It is small, and asked more than once: worked out once.
    # It is usually empty, but read from a large table: worked out before what uses it is planned,
    # because Spark would take it for as large as that table.
    sized: bool = False
    # It is asked more than once: worked out once where rows are held in memory.
    shared: bool = False

    @cached_property
    def reads(self) -> frozenset[str]:
        named = frozenset(name for _, name, _, _ in Formatter().parse(self.sql) if name)
        return named - _BY_RUN.keys()

    def query(self, **inputs: str) -> str:
        read = {name: inputs.get(name, name) for name in self.reads}
        return self.sql.format_map({**_BY_RUN, **read})

    def of_one(self) -> str:
        """Return the query over a single run, without the keys that are for several.

        Spark keeps a constant among keys, and does not see that rows are in their order.
        """
        read = {name: name for name in self.reads}
        return self.sql.format_map({**dict.fromkeys(_BY_RUN, ""), **read})


def in_order(relations: Iterable[Relation]) -> list[Relation]:
    found: dict[str, Relation] = {}
    for relation in relations:
        found |= {one.name: one for one in _with_uses(relation) if one.name not in found}
    return list(found.values())


def _with_uses(relation: Relation) -> Iterator[Relation]:
    for used in relation.uses:
        yield from _with_uses(used)
    yield relation


def _text(name: str) -> str:
    file = resources.files("reports") / "analysis" / "views" / f"{name}.sql"
    return file.read_text(encoding="utf-8")


PARTITIONS = Relation(name="partitions", sql=_text("partitions"), cached=True, shared=True)
UNCONFIRMED = Relation(name="unconfirmed", sql=_text("unconfirmed"), sized=True)
DELIVERY_PAIRS = Relation(
    name="delivery_pairs",
    sql=_text("delivery_pairs"),
    uses=(PARTITIONS,),
    by_record=True,
    over_records=True,
    shared=True,
)
RECORDS_OF_LOGS = Relation(
    name="records_of_logs",
    sql=_text("records_of_logs"),
    uses=(PARTITIONS, UNCONFIRMED),
    by_record=True,
    over_records=True,
)
IN_FLIGHT = Relation(
    name="in_flight", sql=_text("in_flight"), uses=(PARTITIONS,), over_records=True, cached=True
)
STORED_AS_FINAL = Relation(
    name="stored_as_final",
    sql=_text("stored_as_final"),
    uses=(PARTITIONS, DELIVERY_PAIRS),
    over_records=True,
)
OFFSET_SAMPLES = Relation(name="offset_samples", sql=_text("offset_samples"), uses=(PARTITIONS,))
LAST_SAMPLES = Relation(name="last_samples", sql=_text("last_samples"), uses=(PARTITIONS,))
EPOCHS = Relation(name="epochs", sql=_text("epochs"), uses=(PARTITIONS, OFFSET_SAMPLES))
OPERATIONS = Relation(name="all_operations", sql=_text("all_operations"))
