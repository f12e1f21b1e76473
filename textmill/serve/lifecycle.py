"""Which version of a model answers, and how it is replaced while it does.

The keeper of a model looks at the store's state file. A new live version is loaded beside the old one;
when it has proven itself, one assignment in the routing table makes it answer. Promises: the table is
replaced on the event loop, never changed, so a request sees one version from start to end; the old
version answers what it began, and stays warm for a while for rolling back; a version that is refused
leaves everything as it was, with the reason in the status and the journal, and is tried again as long as
the store calls it live (a copy may end, a disk may come back).
What is not covered: whether a version deserves to go live (the gate, before the store is changed).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from textmill.core.errors import RequestError, ServeError, StoreError, TextmillError
from textmill.runtime.encoder import TextEncoder
from textmill.serve.config import ServeConfig
from textmill.serve.metrics import Metrics
from textmill.serve.version import LoadedVersion, Stage
from textmill.store.registry import Store
from textmill.store.state import STATE

logger = logging.getLogger(__name__)

_FIRST_RETRY_S = 2.0
_LAST_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Route:
    """Where the requests of one model go."""

    live: LoadedVersion | None
    versions: Mapping[int, LoadedVersion]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A version that was not let in."""

    version: int
    reason: str
    when: float


class Router:
    """The routing table: an immutable mapping that is replaced as a whole."""

    def __init__(self) -> None:
        self.table: Mapping[str, Route] = MappingProxyType({})

    def replace(self, model: str, route: Route) -> None:
        """Let requests that come from now on take `route`."""
        self.table = MappingProxyType({**self.table, model: route})

    def find(self, model: str, version: int | None) -> LoadedVersion:
        """Return the version that answers a request.

        Raises:
            RequestError: 404 for an unknown model or version, 503 while none can answer.
        """
        route = self.table.get(model)
        if route is None:
            raise RequestError(
                "The model must be one that this server has",
                got="another name",
                fix=f"Known: {', '.join(sorted(self.table)) or 'none'}.",
                status=404,
            )
        if version is None:
            if route.live is None or not route.live.is_available:
                raise RequestError(
                    f"{model} must have a live version",
                    got="none that can answer yet",
                    fix="Send the request again after the time in Retry-After.",
                    status=503,
                )
            return route.live
        found = route.versions.get(version)
        if found is None or not found.is_available:
            loaded = sorted(number for number, each in route.versions.items() if each.is_available)
            raise RequestError(
                f"The version must be one of {model} that is loaded",
                got=f"version {version}",
                fix=f"Loaded: {', '.join(map(str, loaded)) or 'none'}.",
                status=503 if found is not None and found.stage is not Stage.REJECTED else 404,
            )
        return found


class Keeper:
    """Keeps one model answering with the version that its store calls live."""

    def __init__(self, store: Store, config: ServeConfig, router: Router, metrics: Metrics) -> None:
        self.store = store
        self.refusals: dict[int, Refusal] = {}
        self.swapped_at: float | None = None
        self.commit_ms: float | None = None
        """How long the last change of the live version held up the event loop."""
        self._config = config
        self._router = router
        self._metrics = metrics
        self._loaded: dict[int, LoadedVersion] = {}
        self._live: LoadedVersion | None = None
        self._wanted: int | None = None
        self._asked: set[int] = set()
        self._loads: dict[int, asyncio.Task[LoadedVersion]] = {}
        self._seen: bytes | None = None
        self._retry_s = _FIRST_RETRY_S
        self._retry_at: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._holds: dict[int, asyncio.TimerHandle] = {}
        self._publish_route()

    @property
    def live(self) -> LoadedVersion | None:
        """The version that answers."""
        return self._live

    @property
    def loaded(self) -> Mapping[int, LoadedVersion]:
        """All versions in memory or on their way there."""
        return self._loaded

    # ---- following the store

    async def start(self) -> None:
        """Bring the live version up; if it is refused, the previous one.

        Raises:
            TextmillError: there is a live version, but neither it nor the previous one can be served.
        """
        self._seen = self._read_state()
        state = self.store.state()
        if state.live is None:
            logger.warning("%s has no live version yet; waiting for one", self.store.name)
            return
        self._wanted = state.live
        try:
            self._swap_to(await self._load(state.live))
        except TextmillError as err:
            if state.previous is None:
                raise
            logger.error("Version %d is refused (%s); version %d answers", state.live, err, state.previous)
            self._swap_to(await self._load(state.previous))

    async def follow(self) -> None:
        """Look at the store for ever; never raises for what is in the store."""
        while True:
            await asyncio.sleep(self._config.poll_ms / 1000)
            self._look()
            if self._retry_at is not None and time.monotonic() >= self._retry_at:
                assert self._wanted is not None, "only a wanted version is tried again"
                self._retry_at = None
                self._spawn(self._bring_live(self._wanted))

    def _look(self) -> None:
        content = self._read_state()
        if content == self._seen:
            return
        self._seen = content
        try:
            state = self.store.state()
        except (StoreError, OSError) as err:
            logger.error("The state of %s cannot be read, nothing changes: %s", self.store.name, err)
            return
        if state.live is not None and state.live != self._wanted:
            self.want(state.live)

    def want(self, version: int) -> None:
        """Make a version live as soon as it can be; at once if it is warm."""
        self._wanted = version
        self._retry_s, self._retry_at = _FIRST_RETRY_S, None
        for number, load in list(self._loads.items()):
            if number != version and number not in self._asked:
                load.cancel()
        warm = self._loaded.get(version)
        if warm is not None and warm.is_available and warm.is_ready:
            self._swap_to(warm)
        else:
            self._spawn(self._bring_live(version))

    async def _bring_live(self, version: int) -> None:
        try:
            loaded = await self._load(version)
        except TextmillError:
            return  # kept in `refusals`, told in the log and the journal, tried again
        except asyncio.CancelledError:
            if version == self._wanted:
                raise
            return
        if version == self._wanted:
            self._swap_to(loaded)
        elif version not in self._asked:
            self._spawn(self._retire(loaded))

    def _read_state(self) -> bytes | None:
        try:
            return (self.store.path / STATE).read_bytes()
        except OSError:
            return None

    # ---- loading

    async def load(self, version: int) -> LoadedVersion:
        """Load a version beside the live one, for requests that name it.

        Raises:
            TextmillError: no such version, or the reason why it is refused.
        """
        self._asked.add(version)
        return await self._load(version)

    async def unload(self, version: int) -> None:
        """Take a version out of memory after its open requests.

        Raises:
            ServeError: it is live, or not loaded.
        """
        loaded = self._loaded.get(version)
        if loaded is None or loaded is self._live:
            raise ServeError(
                "A version that is unloaded must be loaded and not live",
                got=f"version {version}, live {self._live.number if self._live else 'none'}",
                fix="Promote another version first, or name a loaded one.",
            )
        self._asked.discard(version)
        await self._retire(loaded)

    async def _load(self, version: int) -> LoadedVersion:
        while (called_off := self._loads.get(version)) is not None and called_off.cancelling():
            await asyncio.wait([called_off])
        loaded = self._loaded.get(version)
        if loaded is not None and loaded.is_available:
            return loaded
        task = self._loads.get(version)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open(version))
            self._loads[version] = task
            task.add_done_callback(lambda done: self._end_load(version, done))
        return await asyncio.shield(task)

    def _end_load(self, version: int, done: asyncio.Task[LoadedVersion]) -> None:
        self._loads.pop(version, None)
        if not done.cancelled():
            done.exception()  # whoever waited got it; nobody may have waited

    async def _open(self, version: int) -> LoadedVersion:
        loop = asyncio.get_running_loop()
        loaded: LoadedVersion | None = None
        try:
            bundle = await loop.run_in_executor(None, self.store.bundle, version)
            encoder = await loop.run_in_executor(None, TextEncoder.open, bundle.path)
            loaded = LoadedVersion(bundle, encoder, self._config, self._metrics, self._replace_lost)
            self._loaded[version] = loaded
            self._publish_route()
            await loaded.open(patient=self._live is not None)
        except TextmillError as err:
            self._forget(version)
            self._refuse(version, err)
            raise
        except asyncio.CancelledError:
            self._forget(version)
            if loaded is not None:
                await loaded.close()
            self._publish_route()
            raise
        except Exception as err:
            logger.exception("Version %d of %s could not be loaded", version, self.store.name)
            self._forget(version)
            if loaded is not None:
                await loaded.close()
            fault = ServeError(
                "A version must load",
                got=f"{type(err).__name__}: {err}"[:300],
                fix="Publish it again; the server's log has the details.",
            )
            self._refuse(version, fault)
            raise fault from err
        self.refusals.pop(version, None)
        self._publish_route()
        return loaded

    def _refuse(self, version: int, err: TextmillError) -> None:
        # The public status tells the reason, but not where the store lies.
        reason = str(err).replace(f"{self.store.path}/", "")
        known = self.refusals.get(version)
        self.refusals[version] = Refusal(version, reason, time.time())
        self._publish_route()
        if version == self._wanted:
            self._retry_at = time.monotonic() + self._retry_s
            self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
        if known is not None and known.reason == reason:
            return  # another try with the same end is no news
        logger.error("Version %d of %s is refused: %s", version, self.store.name, err)
        self._metrics.rejected(self.store.name)
        self._spawn(self._journal_refusal(version, str(err)))

    async def _journal_refusal(self, version: int, reason: str) -> None:
        def record() -> None:
            self.store.record("refused", version=version, reason=reason)

        try:
            await asyncio.get_running_loop().run_in_executor(None, record)
        except (StoreError, OSError) as err:
            logger.warning("The refusal could not be written to the journal: %s", err)

    # ---- swapping

    def _swap_to(self, version: LoadedVersion) -> None:
        """Make a ready version the live one; requests that began on the old one end there."""
        begun = time.perf_counter()
        old, self._live = self._live, version
        if old is version:
            return
        if (hold := self._holds.pop(version.number, None)) is not None:
            hold.cancel()
        if version.number == self._wanted:
            self._retry_s, self._retry_at = _FIRST_RETRY_S, None
        version.is_live = True
        version.mark(Stage.AVAILABLE)
        self._publish_route()
        self.commit_ms = 1000 * (time.perf_counter() - begun)
        self.swapped_at = time.time()
        self._metrics.swapped(self.store.name)
        logger.info("Version %d of %s is live", version.number, self.store.name)
        if old is not None:
            old.is_live = False
            self._spawn(self._keep_warm(old))
        for number, other in list(self._loaded.items()):
            is_spare = other is not version and other is not old and number not in self._asked
            if is_spare and other.is_available:
                self._spawn(self._retire(other))

    async def _keep_warm(self, old: LoadedVersion) -> None:
        """Let a version end its requests, and keep it for rolling back until the hold is over."""
        old.mark(Stage.DRAINING)
        await old.drain(self._config.drain_timeout_s)
        if old is self._live:
            return
        old.mark(Stage.AVAILABLE)
        if old.number in self._asked:
            return
        self._holds[old.number] = asyncio.get_running_loop().call_later(
            self._config.rollback_hold_s, lambda: self._spawn(self._retire(old))
        )

    async def _retire(self, version: LoadedVersion) -> None:
        if version is self._live:
            return
        if (hold := self._holds.pop(version.number, None)) is not None:
            hold.cancel()
        if self._loaded.get(version.number) is version:
            del self._loaded[version.number]
        self._publish_route()
        version.mark(Stage.DRAINING)
        await version.drain(self._config.drain_timeout_s)
        await version.close()
        self._forget_series(version.number)

    def _forget(self, version: int) -> None:
        self._loaded.pop(version, None)
        self._forget_series(version)

    def _forget_series(self, version: int) -> None:
        if version not in self._loaded:  # it may be back already
            self._metrics.forget(self.store.name, version)

    def _replace_lost(self, lost: LoadedVersion) -> None:
        """A version that was ready cannot come back (its files changed): let a warm one answer, or none."""
        was_live = lost is self._live
        if was_live:
            self._live = None
        if self._loaded.get(lost.number) is lost:
            self._forget(lost.number)
        self._refuse(
            lost.number, ServeError("A worker must come back", got=lost.reason, fix="Publish again.")
        )
        spares = [each for each in self._loaded.values() if each.is_ready]
        if was_live and spares:
            self._swap_to(max(spares, key=lambda each: each.since))
        self._spawn(lost.close())

    async def close(self) -> None:
        """End everything that belongs to this model; requests must have ended before."""
        for hold in self._holds.values():
            hold.cancel()
        tasks = [*self._tasks, *self._loads.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(version.close() for version in list(self._loaded.values())))

    def _publish_route(self) -> None:
        route = Route(self._live, MappingProxyType(dict(self._loaded)))
        self._router.replace(self.store.name, route)

    def _spawn(self, work: object) -> None:
        assert asyncio.iscoroutine(work), "only coroutines are spawned"
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
