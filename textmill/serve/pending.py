"""One request while it waits for its answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textmill.core.errors import RequestError

if TYPE_CHECKING:
    from textmill.serve.batcher import Item


class Pending:
    """The answers of one request as they come in; ends once, by all answers or by one fault.

    It has a row for each text, or several for one that is cut to windows.
    """

    __slots__ = ("answer", "items", "num_open", "rows", "timer")

    def __init__(self, num_items: int, loop: asyncio.AbstractEventLoop) -> None:
        self.answer: asyncio.Future[list[list[float]]] = loop.create_future()
        """The scores of each row, in the order of the texts."""
        self.rows: list[list[float]] = [[] for _ in range(num_items)]
        self.num_open = num_items
        self.items: list[Item] = []
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any more."""
        return self.answer.done()

    def give(self, index: int, row: list[float]) -> None:
        """Take the scores of one row."""
        self.rows[index] = row
        self.num_open -= 1
        if self.num_open == 0 and not self.answer.done():
            self.answer.set_result(self.rows)

    def fail(self, error: RequestError) -> None:
        """End the request with a fault."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def abandon(self) -> None:
        """End the request without an answer: the client has gone."""
        self.answer.cancel()
