"""What hatchling calls to put the manual page, which is not committed, into a wheel."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPage(BuildHookInterface):
    """Writes ``shareproof.1`` where an installation keeps manual pages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write the page into a directory of its own before the wheel is built."""
        sys.path.insert(0, self.root)
        from tools.documents.manpage import page

        self.into = Path(tempfile.mkdtemp())
        file = self.into / "shareproof.1"
        file.write_text(page(), encoding="utf-8")
        build_data["shared_data"][str(file)] = "share/man/man1/shareproof.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        shutil.rmtree(self.into)
