"""The table as a picture: ``python -m spec.model.diagram`` prints Mermaid for ``docs/model.md``."""

import sys

from spec.model.table import TABLE, TERMINAL, Event, Guard, State

WORDS = {
    Guard.ALWAYS: "",
    Guard.BELOW_LIMIT: "below the limit",
    Guard.AT_LIMIT: "at the limit",
    Guard.AT_LIMIT_WITH_DLQ: "at the limit, with DLQ",
    Guard.WITHOUT_DLQ: "without DLQ",
    Guard.WITH_DLQ: "with DLQ",
}


def name(state: State) -> str:
    return state.name.capitalize()


def mermaid() -> str:
    """Return the state diagram: one arrow for each pair of states and guard."""
    arrows: dict[tuple[State, State, Guard], list[Event]] = {}
    for row in TABLE:
        arrows.setdefault((row.before, row.after, row.guard), []).append(row.event)
    lines = ["stateDiagram-v2", f"    [*] --> {name(State.AVAILABLE)}"]
    for (before, after, guard), events in arrows.items():
        words = ", ".join(event.value for event in events)
        condition = f" [{WORDS[guard]}]" if WORDS[guard] else ""
        lines.append(f"    {name(before)} --> {name(after)}: {words}{condition}")
    lines.extend(f"    {name(state)} --> [*]" for state in sorted(TERMINAL))
    return "\n".join(lines)


def rows() -> str:
    lines = ["| event | from | to | when | what else | rule |", "|---|---|---|---|---|---|"]
    for row in TABLE:
        effects = ", ".join(effect.value for effect in row.effects)
        cells = (row.event.value, name(row.before), name(row.after), WORDS[row.guard], effects)
        lines.append("| " + " | ".join((*cells, row.rule)) + " |")
    return "\n".join(lines)


def document() -> str:
    return f"```mermaid\n{mermaid()}\n```\n\n{rows()}\n"


if __name__ == "__main__":
    sys.stdout.write(document())
