"""The store of one model: its versions, its state and its journal, and every change of them.

Promises: versions are immutable and numbers are never given twice; each change of the state is one atomic
replacement under a lock, with its line in the journal; `prune` never removes a version that is live,
previous, in a channel or pinned.
What is not covered: whether a version deserves to go live (`serve/gate.py` promotes through the gate).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textmill.core.errors import StoreError, nearest
from textmill.core.files import remove_tree
from textmill.core.progress import SILENT, Progress
from textmill.store.bundle import Bundle
from textmill.store.journal import Entry, What, read_journal, write_entry
from textmill.store.manifest import Facts, check_name
from textmill.store.publish import VERSIONS, list_versions, publish, sweep
from textmill.store.state import State, locked, read_state, write_state


def list_models(root: Path) -> list[str]:
    """Return the names of all models in the store folder `root`, sorted.

    Raises:
        StoreError: the folder is not there.
    """
    if not root.is_dir():
        siblings = [each.name for each in root.parent.iterdir()] if root.parent.is_dir() else []
        hint = nearest(root.name, siblings).partition("Known")[0]
        raise StoreError(
            "The store must be a folder",
            got=f"{root}, which is none",
            fix=f"{hint}`textmill run` or `textmill store publish` makes it with the first version.",
        )
    return sorted(each.name for each in root.iterdir() if (each / VERSIONS).is_dir())


class Store:
    """All versions of one model under `root/name`; nothing is touched until a method is called."""

    def __init__(self, root: Path, name: str) -> None:
        """Name a store; it need not be there yet.

        Raises:
            StoreError: a name that cannot be a folder of the store.
        """
        self.root = root
        self.name = check_name(name, "model name")
        self.path = root / name

    def publish(self, source: Path, facts: Facts, progress: Progress = SILENT) -> int:
        """Make the next version from a prepared folder and return its number; it is not live yet.

        Raises:
            StoreError: a source that may not become a bundle, or a disk that cannot take it.
        """
        return publish(self.path, self.name, source, facts, progress)

    def versions(self) -> list[int]:
        """Return the numbers of all versions, ascending.

        Raises:
            StoreError: there is no such store.
        """
        self._check_there()
        return list_versions(self.path)

    def bundle(self, version: int) -> Bundle:
        """Return one version; its files are not checked yet (`Bundle.verify`).

        Raises:
            StoreError: no such version, or a damaged manifest.
        """
        known = self.versions()
        if version not in known:
            raise StoreError(
                f"The version must be one of {self.name} in {self.root}",
                got=f"version {version}",
                fix=f"Known versions: {', '.join(map(str, known)) or 'none'}.",
            )
        bundle = Bundle.open(self.path / VERSIONS / str(version))
        if (bundle.manifest.name, bundle.version) != (self.name, version):
            raise StoreError(
                f"The folder {bundle.path} must hold version {version} of {self.name}",
                got=f"version {bundle.version} of {bundle.manifest.name}",
                fix="A folder was moved or copied by hand: put it back, or publish it as a new version.",
            )
        return bundle

    def state(self) -> State:
        """Return which versions are live, previous, named, pinned and banned.

        Raises:
            StoreError: there is no such store, or its state file is damaged.
        """
        self._check_there()
        return read_state(self.path)

    def journal(self) -> list[Entry]:
        """Return everything that was done to this store, the oldest first."""
        return read_journal(self.path, self.state().revision, newest=max(self.versions(), default=0))

    def record(
        self, what: What, *, version: int | None, reason: str = "", report: dict[str, Any] | None = None
    ) -> None:
        """Add a line to the journal for an event that changes no state."""
        with locked(self.path):
            live = read_state(self.path).live
            write_entry(self.path, what, version=version, live=(live, live), reason=reason, report=report)

    def set_live(
        self,
        version: int,
        reason: str,
        report: dict[str, Any] | None = None,
        *,
        replacing: State | None = None,
        lift_ban: bool = False,
    ) -> State:
        """Make a version the one that answers; the one before becomes `previous`.

        Args:
            version: the version.
            reason: why, for the journal.
            report: the report of the gate, for the journal.
            replacing: the state on which the decision was made; if another version went live since, the
                change is refused. None: whatever is live is replaced.
            lift_ban: also if the version is banned; the ban is lifted.

        Raises:
            StoreError: no such version, a banned one, or another version went live meanwhile.
        """
        self.bundle(version)

        def change(state: State) -> State:
            if replacing is not None and state.live != replacing.live:
                raise StoreError(
                    "The live version must not change while another one is checked against it",
                    got=f"live version {state.live} in place of {replacing.live}",
                    fix="Promote again: the check is then made against the new live version.",
                )
            if version in state.bans and not lift_ban:
                raise StoreError(
                    f"Version {version} of {self.name} must not be banned to go live",
                    got=f"a ban ({state.bans[version]})",
                    fix="Publish a better version, or promote this one with --force to lift the ban.",
                )
            if state.live == version:
                return state
            bans = {banned: why for banned, why in state.bans.items() if banned != version}
            return state.model_copy(update={"live": version, "previous": state.live, "bans": bans})

        return self._change("live", version, change, reason, report)

    def rollback(self, reason: str = "") -> State:
        """Make the previous version live again and ban the one that is left.

        The ban keeps whoever promotes by himself from bringing the bad version back.

        Raises:
            StoreError: there is no previous version, or it is no longer in the store.
        """

        def change(state: State) -> State:
            if state.live is None or state.previous is None:
                known = ", ".join(map(str, self.versions())) or "none"
                raise StoreError(
                    f"{self.name} must have a previous version to roll back to",
                    got=f"live {state.live or 'none'}, previous none",
                    fix=f"Promote a version by its number; known: {known}.",
                )
            self.bundle(state.previous)
            bans = {**state.bans, state.live: reason or f"rolled back to {state.previous}"}
            return state.model_copy(update={"live": state.previous, "previous": None, "bans": bans})

        return self._change("rollback", None, change, reason)

    def set_channel(self, channel: str, version: int | None, reason: str = "") -> State:
        """Give the name `channel` to a version; None takes the name away.

        Raises:
            StoreError: a name that cannot be a channel, or no such version.
        """
        check_name(channel, "channel name")
        if version is not None:
            self.bundle(version)

        def change(state: State) -> State:
            rest = {name: number for name, number in state.channels.items() if name != channel}
            return state.model_copy(
                update={"channels": rest if version is None else {**rest, channel: version}}
            )

        return self._change("channel", version, change, reason or channel)

    def pin(self, version: int, reason: str = "") -> State:
        """Keep a version from ever being pruned."""
        self.bundle(version)
        return self._change(
            "pin",
            version,
            lambda state: state.model_copy(update={"pins": tuple(sorted({*state.pins, version}))}),
            reason,
        )

    def unpin(self, version: int, reason: str = "") -> State:
        """Let a version be pruned again."""
        return self._change(
            "unpin",
            version,
            lambda state: state.model_copy(update={"pins": tuple(p for p in state.pins if p != version)}),
            reason,
        )

    def ban(self, version: int, reason: str) -> State:
        """Keep a version from going live.

        Raises:
            StoreError: no such version, or it is live (roll back first).
        """
        self.bundle(version)

        def change(state: State) -> State:
            if version == state.live:
                raise StoreError(
                    "A banned version must not be live",
                    got=f"live version {version}",
                    fix="Roll back: that bans it.",
                )
            return state.model_copy(update={"bans": {**state.bans, version: reason}})

        return self._change("ban", version, change, reason)

    def unban(self, version: int, reason: str = "") -> State:
        """Let a version go live again."""
        return self._change(
            "unban",
            version,
            lambda state: state.model_copy(
                update={"bans": {b: why for b, why in state.bans.items() if b != version}}
            ),
            reason,
        )

    def prune(self, keep: int) -> list[int]:
        """Remove old versions and return their numbers.

        Args:
            keep: how many of the newest versions stay, at least 1, besides those that are live, previous,
                in a channel or pinned.

        Raises:
            StoreError: `keep` below 1.
        """
        if keep < 1:
            raise StoreError(
                "keep must be at least 1", got=f"keep={keep}", fix="The newest version always stays."
            )
        self._check_there()
        with locked(self.path):
            sweep(self.path)
            state = read_state(self.path)
            doomed = [version for version in list_versions(self.path)[:-keep] if version not in state.kept]
            for version in doomed:
                remove_tree(self.path / VERSIONS / str(version))
                write_entry(self.path, "prune", version=version, live=(state.live, state.live))
        return doomed

    def _change(
        self,
        what: What,
        version: int | None,
        change: Callable[[State], State],
        reason: str,
        report: dict[str, Any] | None = None,
    ) -> State:
        self._check_there()
        with locked(self.path):
            before = read_state(self.path)
            after = change(before)
            if after == before:
                return before
            after = after.model_copy(update={"revision": before.revision + 1})
            write_entry(
                self.path,
                what,
                version=after.live if version is None and what == "rollback" else version,
                live=(before.live, after.live),
                revision=after.revision,
                reason=reason,
                report=report,
            )
            write_state(self.path, after)
            return after

    def _check_there(self) -> None:
        if (self.path / VERSIONS).is_dir():
            return
        known = list_models(self.root)
        got = f"{self.path}, which is no store" if self.path.exists() else f"no {self.name} in {self.root}"
        raise StoreError("The model must be in the store", got=got, fix=nearest(self.name, known))
