"""Rows that cannot be read or used: stop at the first one, or leave each out with its place kept.

Promises: with `fail` the first bad row is an error with file and row, the value and the next step;
with `skip` every bad row is counted and written once to the side file (file, row, reason, the
beginning of the row), so that nothing is dropped without a word. Where many rows in a row are bad for
one reason (a file with other columns), one line tells the first and their number. A row number is null
where the unknown rest of a file is bad; that counts as one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from textmill.core.errors import DataError
from textmill.core.files import disk_faults

OnBadRow = Literal["fail", "skip"]
SIDE_FILE = "bad-rows.jsonl"
_RAW_CHARACTERS = 200
_PENDING = 200
NUM_LISTED = 20


@dataclass(frozen=True, slots=True)
class BadRow:
    """One row that was left out, or a file whose rest was."""

    file: str
    row: int | None
    """Counted from 1 in the file without the header; None: the rest of the file."""
    reason: str
    raw: str
    """The beginning of the row as it stands in the file."""
    rows: int = 1
    """How many rows from there on."""

    @property
    def place(self) -> str:
        """As in messages."""
        return f"{self.file}, its rest" if self.row is None else f"{self.file}:{self.row}"


class BadRows:
    """What happens to bad rows, and which there were."""

    def __init__(self, policy: OnBadRow = "fail", side_file: Path | None = None) -> None:
        """Begin an account; a side file that is there already is gone on with.

        Args:
            policy: `data.on_bad_row`.
            side_file: where bad rows are written; None: they are only counted.
        """
        self.policy = policy
        self.side_file = side_file
        self.first: list[BadRow] = []
        """The first bad rows, at most 20."""
        self.count = 0
        """Bad rows so far, each counted once however often it is read."""
        self._seen: set[tuple[str, int | None]] = set()
        self._pending: list[BadRow] = []
        if side_file is not None and side_file.exists():
            for line in side_file.read_text(encoding="utf-8").split("\n")[:-1]:
                self._note(BadRow(**json.loads(line)))

    def refuse(self, error: DataError, file: str, row: int | None, raw: str, rows: int = 1) -> None:
        """Raise the error, or note the row, or `rows` rows from it on, as left out.

        Raises:
            DataError: the policy is `fail`.
        """
        if self.policy == "fail":
            raise error
        found = BadRow(file, row, f"{error.rule}, but got {error.got}", raw[:_RAW_CHARACTERS], rows)
        if self._note(found) and self.side_file is not None:
            self._pending.append(found)
            if len(self._pending) >= _PENDING:
                self.flush()

    def flush(self) -> None:
        """Write what was noted since the last time."""
        if self.side_file is None or not self._pending:
            return
        lines = "".join(json.dumps(asdict(row), ensure_ascii=True) + "\n" for row in self._pending)
        with disk_faults(self.side_file):
            self.side_file.parent.mkdir(parents=True, exist_ok=True)
            with open(self.side_file, "a", encoding="utf-8") as file:
                file.write(lines)
        self._pending.clear()

    def as_json(self) -> dict[str, Any]:
        """Return the count, the first rows and the side file's name, for the report."""
        return {
            "policy": self.policy,
            "count": self.count,
            "first": [asdict(row) for row in self.first],
            "side_file": self.side_file.name if self.side_file and self.count else None,
        }

    def _note(self, row: BadRow) -> bool:
        key = (row.file, row.row)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.count += row.rows
        if len(self.first) < NUM_LISTED:
            self.first.append(row)
        return True
