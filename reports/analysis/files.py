"""What there is of a history on disk, and which of it can be believed."""

import json
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spec.history import ADDED, BUCKETED, OPTIONAL, TABLES, File, Manifest
from spec.verdict import EnvironmentFault, MixedTargets

MANIFEST, RUN = "manifest.json", "run.json"
NEEDED = frozenset({"share_partitions", "reloads", "unseen_responses", "members"})
"""Tables without which nothing can be judged soundly."""
EXCUSES = frozenset({"deletions", "faults", "limits", "locks", "offsets"})
"""Tables that say why what looks like a breach is none: without them nothing is surely broken."""
_KINDS: dict[str, type] = {
    "target": dict,
    "load": dict,
    "properties": dict,
    "seed": int,
    "brokers": int,
}
"""What the parts of ``run.json`` are, where they are there."""
_CHUNK = 1 << 20
MOST_TOGETHER = 200
"""Histories that are judged by one set of queries: each one makes these a little longer."""
_AT_ONCE = 8
"""Files that are read at the same time, for those that are large or lie far away."""
_QUICKLY_READ = 32 << 20
"""Bytes of a history on this machine that one thread reads as fast as several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    folder: Path  # Where it is.
    manifest: Manifest  # What it consists of.
    run: dict[str, Any]  # What its run says about itself.
    spoiled: tuple[str, ...] = ()  # Sentences that name what cannot be read.
    lost_tables: frozenset[str] = frozenset()  # Small tables that cannot be read.
    # Buckets that cannot be read, in one of the large tables or in both.
    lost_buckets: frozenset[int] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether what is missing here did not happen: no process was killed, nothing spoiled."""
        return not (self.manifest.cut or self.manifest.broken or self.lost_tables)

    @property
    def complete(self) -> bool:
        """Whether all is here that its run had to leave, to be read."""
        return self.whole and not self.spoiled

    def rows(self, table: str) -> int:
        return sum(file.rows for file in self.manifest.files if file.table == table)

    def readable(self, table: str) -> list[File]:
        return [
            file
            for file in self.manifest.files
            if file.table == table
            and table not in self.lost_tables
            and file.bucket not in self.lost_buckets
        ]

    @property
    def lost_excuses(self) -> tuple[str, ...]:
        """The tables that cannot be read and might have excused what looks broken."""
        broken = {Path(name).stem for name in self.manifest.broken}
        return tuple(
            sorted(self.lost_tables & EXCUSES | broken & (EXCUSES | NEEDED | {"acknowledged"}))
        )

    @property
    def version(self) -> str:
        return str(self.run.get("target", {}).get("version", ""))

    @property
    def cut_short(self) -> tuple[str, ...]:
        cut = (f"{name}: cut when its process was killed" for name in self.manifest.cut)
        broken = (f"{name}: unreadable from some byte on" for name in self.manifest.broken)
        return (*cut, *broken)


def of_one_target(histories: Sequence[History]) -> None:
    """Raise MixedTargets unless one ledger and one release hold for all of these histories."""
    names = sorted({str(one.run.get("target", {}).get("name", "unnamed")) for one in histories})
    if len(names) > 1:
        raise MixedTargets(
            f"these runs are of {' and '.join(names)}, and each release is judged by its own "
            "rules and ledger: judge the runs of one target at a time."
        )


def together(histories: Sequence[History], *, here: bool) -> list[list[int]]:
    """Return which histories are judged by one set of queries, by their places.

    One in another layout is judged by itself, and so is one of which buckets cannot be read, unless
    Spark runs on this machine and the history is here: then the other files can be linked to.
    """
    found: dict[tuple[int, int], list[int]] = {}
    for at, one in enumerate(histories):
        linked = here and isinstance(one.folder, PosixPath)
        alone = bool(one.lost_buckets) and not linked
        found.setdefault((one.manifest.buckets, at if alone else -1), []).append(at)
    return [
        places[first : first + MOST_TOGETHER]
        for places in found.values()
        for first in range(0, len(places), MOST_TOGETHER)
    ]


def read_manifest(path: Path) -> tuple[Path, Manifest]:
    """Return a history's directory and manifest; raises EnvironmentFault where there is none."""
    folder = path / "history" if (path / "history").is_dir() else path
    try:
        return folder, Manifest.from_json((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise EnvironmentFault(f"{folder}: no history ({error.strerror})") from None
    except ValueError as error:
        raise EnvironmentFault(f"{folder / MANIFEST}: {error}") from None


def open_history(path: Path) -> History:
    """Look at a history, or at that of a run, and check its files; raises EnvironmentFault."""
    folder, manifest = read_manifest(path)
    _look_through(folder, manifest)
    faults = _faults(folder, manifest.files)
    wrong = [(file, why) for file, why in zip(manifest.files, faults, strict=True) if why]
    lost = frozenset(file.table for file, _ in wrong if file.table not in BUCKETED)
    spoiled = tuple(f"{folder / file.path}: {why}" for file, why in wrong)
    if unjudgeable := lost & NEEDED:
        names = ", ".join(sorted(unjudgeable))
        raise EnvironmentFault(f"nothing can be judged without {names}: {'; '.join(spoiled)}")
    run, unknown = _run(folder)
    spoiled += (unknown,) if unknown else ()
    return History(
        folder=folder,
        manifest=manifest,
        run=run,
        spoiled=spoiled,
        lost_tables=lost,
        lost_buckets=frozenset(file.bucket for file, _ in wrong if file.table in BUCKETED),
    )


def _faults(folder: Path, files: Sequence[File]) -> list[str]:
    if isinstance(folder, PosixPath) and sum(file.size for file in files) < _QUICKLY_READ:
        # Threads would take the interpreter from each other: 2.6 s for a hundred small histories
        # instead of 0.8 s.
        return [_fault(folder, file) for file in files]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda file: _fault(folder, file), files))


def _look_through(folder: Path, manifest: Manifest) -> None:
    """Raise EnvironmentFault for tables that are missing, and for files that belong to none."""
    rows = {name: sum(f.rows for f in manifest.files if f.table == name) for name in TABLES}
    if missing := sorted(NEEDED - {file.table for file in manifest.files}):
        raise EnvironmentFault(f"{folder / MANIFEST}: it names no file of {', '.join(missing)}")
    if not rows["share_partitions"]:
        lost = [name for name in (*manifest.cut, *manifest.broken) if "/share_partitions." in name]
        why = f"{lost[0]} cannot be read" if lost else "nothing was recorded before its run ended"
        raise EnvironmentFault(f"{folder}: nothing can be judged, {why}")
    known = {folder / file.path for file in manifest.files}
    for name in TABLES:
        if strange := sorted(_inside(folder / name) - known):
            raise EnvironmentFault(
                f"{strange[0]}: {MANIFEST} does not name it, so it is no part of this history: "
                "take it away."
            )


def _inside(folder: Path) -> set[Path]:
    try:
        return {file for file in folder.iterdir() if file.name[:1] not in {".", "_", ""}}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _run(folder: Path) -> tuple[dict[str, Any], str]:
    path = folder / RUN
    doubt = "so what release it is of is not known, and it is judged as the newest"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return {}, f"{path}: cannot be read ({error.strerror}), {doubt}"
    except ValueError as error:
        return {}, f"{path}: is no JSON ({error}), {doubt}"
    if not _tells_of_a_run(document):
        return {}, f"{path}: is no description of a run, {doubt}"
    return document, ""


def _tells_of_a_run(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    fitting = (isinstance(document.get(name, kind()), kind) for name, kind in _KINDS.items())
    return all(fitting) and isinstance(document.get("load", {}).get("owed", []), list)


def _fault(folder: Path, file: File) -> str:
    path = folder / file.path
    if not path.is_file():
        return "is missing"
    if path.stat().st_size != file.size:
        return f"has {path.stat().st_size} bytes instead of {file.size}"
    crc = 0
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    if crc != file.crc:
        return "was changed: its checksum is another"
    try:
        with path.open("rb") as source:
            return _unlike(pq.ParquetFile(source), file.table)
    except (pa.ArrowException, OSError) as error:
        return f"is no Parquet file ({error})"


def _unlike(found: pq.ParquetFile, table: str) -> str:
    known = [
        name
        for name in TABLES[table].names
        if name in found.schema_arrow.names or name not in ADDED
    ]
    if not found.schema_arrow.equals(pa.schema([TABLES[table].field(name) for name in known])):
        return f"is no table {table} of this release's schema"
    if table in BUCKETED:
        for place, name in enumerate(TABLES[table].names):
            if name not in OPTIONAL and _has_nulls(found, place, name):
                return f"has rows without a value of {name}"
    return ""


def _has_nulls(found: pq.ParquetFile, place: int, column: str) -> bool:
    groups = range(found.metadata.num_row_groups)
    told = [found.metadata.row_group(group).column(place).statistics for group in groups]
    if all(one is not None and one.has_null_count for one in told):
        return any(one.null_count for one in told)
    return any(part.column(0).null_count for part in found.iter_batches(columns=[column]))


def span(history: History) -> tuple[int, int]:
    """Return when a run began, and when the last that was done in it was over.

    Both are nanoseconds of the run's clock, and 0 where nothing happened at all. Deliveries are
    not read for that: the files say at their ends between which times they are.
    """
    times = [time for pair in _spans(history) for time in pair]
    return min(times, default=0), max(times, default=0)


def _spans(history: History) -> Iterator[tuple[int, int]]:
    for file in history.readable("phases"):
        with (history.folder / file.path).open("rb") as source:
            table = pq.read_table(source, columns=["since", "until"])
        if table.num_rows:
            yield pc.min(table["since"]).as_py(), pc.max(table["until"]).as_py()
    for file in history.readable("deliveries"):
        with (history.folder / file.path).open("rb") as source:
            footer = pq.read_metadata(source)
        column = footer.schema.names.index("acquired")
        for number in range(footer.num_row_groups):
            seen = footer.row_group(number).column(column).statistics
            if seen is not None and seen.has_min_max:
                yield seen.min, seen.max
