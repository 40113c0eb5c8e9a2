"""The agent's switches: each changes one thing of a class, and nothing while it is off."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.machine.java import find_java
from fixtures.machine.maven import compiler_jar
from fixtures.mutants.agency import POINTS, agent_options, points, reached
from tools.campaign.points import NOTICED, SURVIVED, UNREACHED, Fate, table

PROBE = """
package kafka.server.share;

import java.util.*;

public class Probe {
    static final List<String> said = new ArrayList<>();

    static boolean less(int left, int right) { return left < right; }
    static boolean isEmpty(String text) { return text.equals(""); }
    static int sum(int left, int right) { return left + right; }
    static long difference(long left, long right) { return left - right; }
    static Optional<String> found() { return Optional.of("it"); }
    static String text() { return "text"; }
    static void tell(List<String> to) { to.add("told"); }
    static int counted() { int n = 0; for (String one : List.of("a", "b")) n += 2; n++; return n; }
    static boolean isNull(Object one) { if (one == null) return true; return false; }

    static String all() {
        List<String> told = new ArrayList<>();
        tell(told);
        return List.of(less(1, 2), less(2, 2), isEmpty(""), sum(3, 4), difference(9, 4), found(),
            String.valueOf(text()), told, counted(), isNull(null), isNull("")).toString();
    }

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            lines.nextLine();
            System.out.println(answer());
        }
    }

    static String answer() {
        try {
            return all();
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }
}
"""

SOUND = "[true, false, true, 7, 5, Optional[it], text, [told], 5, true, false]"

CHANGED = {
    "less:9 condition negated": "[false, true, true,",
    "less:9 boundary moved": "[true, true, true,",
    "less:9 return value changed": "[false, false, true,",
    "isEmpty:10 return value changed": "[true, false, false,",
    "sum:11 sum of iadd changed": "[true, false, true, -1,",
    "sum:11 return value changed": "[true, false, true, 0,",
    "difference:12 sum of lsub changed": "[true, false, true, 7, 13,",
    "found:13 return value changed": "[true, false, true, 7, 5, Optional.empty,",
    "text:14 return value changed": "[true, false, true, 7, 5, Optional[it], null,",
    "tell:15 call of add left out": "[true, false, true, 7, 5, Optional[it], text, [],",
    "counted:16 sum of iinc changed": "[told], -3,",
    "isNull:17 condition negated": SOUND.replace("true, false]", "false, true]"),
    "all:21 call of tell left out": "[true, false, true, 7, 5, Optional[it], text, [],",
}


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    java, home = find_java(), tmp_path_factory.mktemp("probe")
    (home / "Probe.java").write_text(PROBE)
    compiler = [
        str(java.path),
        "-jar",
        str(compiler_jar()),
        "-17",
        "-proc:none",
        "-nowarn",
        "-d",
        str(home),
    ]
    subprocess.run([*compiler, str(home / "Probe.java")], check=True, timeout=60)
    command = [str(java.path), *agent_options(f"{POINTS}{home / 'point'}", java), "-cp", str(home)]
    with subprocess.Popen(
        [*command, "kafka.server.share.Probe"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        yield running, home / "point"
        running.terminate()


def _printed(running: subprocess.Popen[str]) -> str:
    assert running.stdin
    assert running.stdout
    running.stdin.write("\n")
    running.stdin.flush()
    return running.stdout.readline().strip()


def test_one_point_changes_one_thing(probe: tuple[subprocess.Popen[str], Path]) -> None:
    running, file = probe
    reached(file, "0 ")
    assert _printed(running) == SOUND
    met = reached(file, "1 ")
    for number, (name, expected) in enumerate(CHANGED.items(), start=2):
        point = f"Probe.{name}"
        assert point in met
        reached(file, f"{number} {point}")
        output = _printed(running)
        assert output != SOUND, point
        assert output.startswith(expected) or expected in output, f"{point}: {output}"
        assert point in reached(file, f"-{number} ")
    assert _printed(running) == SOUND


def test_points_have_names_of_their_own() -> None:
    for client, least, known in (
        (False, 4000, "SharePartition.acquire:"),
        (True, 1000, "ShareConsumerImpl.poll:"),
    ):
        names = points(find_java(), "4.4.0", client=client)
        assert len(names) == len(set(names)) > least
        assert any(name.startswith(known) for name in names)


def test_what_came_of_points_is_counted_by_class() -> None:
    found = [
        Fate(point="A.m:1 condition negated", fate=NOTICED, rule="ACK-01"),
        Fate(point="A$B.m:2 condition negated", fate=SURVIVED, played=3, reaching=9),
        Fate(point="C.m:3 condition negated", fate=UNREACHED),
    ]
    lines = table(found)
    assert [line.split() for line in lines[1:4]] == [
        ["A", "1", "1", "0"],
        ["C", "0", "0", "1"],
        ["all", "1", "1", "1"],
    ]
    assert lines[4] == "survived: A$B.m:2 condition negated (3 of 9 checks played, 0 undecided)"
