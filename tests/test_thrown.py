"""What the JVM logs of exceptions, as of finding 138: one in two methods, another in between."""

from pathlib import Path

from tools.thrown import thrown

KIND = "[22.063s] Exception <a '{}'{{{}}}>\n"
PLACE = " thrown in {} method <{{method}} {{0x00007f15e46df788}} '{}' '()Z' in '{}'>\n"
END = " at {} for thread {}\n"
NULL, EOF = "java/lang/NullPointerException", "java/io/EOFException"
PARTITION = "kafka/server/share/SharePartition"
LOG = "".join(
    (
        KIND.format(NULL, "0x00000000e87c3220"),
        PLACE.format("interpreter", "canMoveStartOffset", PARTITION),
        END.format("bci 143", "0x00007f1634441480 (PersisterStateManager)"),
        KIND.format(EOF, "0x00000000e87d0000"),
        PLACE.format("interpreter", "readFrom", "org/apache/kafka/common/network/NetworkReceive"),
        END.format("bci 7", "0x00007f1634440000 (data-plane)"),
        KIND.format(NULL, "0x00000000e87c3220"),
        PLACE.format("C1 compiled", "accept", f"{PARTITION}$$Lambda$1795+0x00007f15ec1593f0"),
        END.format("PC0x00007f7065838b94", "0x00007f1634441480"),
    )
)


def test_a_chain_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "1.log").write_text(LOG)
    methods = ("SharePartition.canMoveStartOffset", "SharePartition.accept")
    assert thrown(tmp_path, every=False) == {("NullPointerException", methods): 1}
    assert len(thrown(tmp_path, every=True)) == 1
