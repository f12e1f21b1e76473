from __future__ import annotations

import pytest

from textmill.core.errors import StoreError
from textmill.store.state import STATE, State, read_state


def test_a_store_without_a_change_has_the_empty_state(tmp_path):
    assert read_state(tmp_path) == State()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"null", b'{"live": "one"}', b'{"other": 1}', b"[" * 100_000]
)
def test_a_damaged_state_is_told_as_such(tmp_path, content):
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(StoreError, match="must hold the state of a store"):
        read_state(tmp_path)
