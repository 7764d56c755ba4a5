"""Retention and clean-up: what goes, and how its rows and files go together."""

import time
from collections.abc import Iterable, Sequence
from itertools import islice

from fetchstash.store import _rows as rows, _steps
from fetchstash.store._catalog import Connection, settle, transaction
from fetchstash.store._contract import Removed
from fetchstash.store._disk import claimed
from fetchstash.store._limits import StoreLimits, plan
from fetchstash.store._place import Place
from fetchstash.store._search import SearchIndex

EVICTIONS_PER_PUT = 32
"""More artifacts do not go at one put, so that lowering a limit does not make it slow."""

CLOCK_SECONDS = 60
"""The clock in the catalogue is moved on in steps, so that not every change writes it."""


class Upkeep:
    """Removes artifacts and files of one store."""

    def __init__(self, place: Place, index: SearchIndex, limits: StoreLimits) -> None:
        self._place = place
        self._blobs, self._catalog = place.blobs, place.catalog
        self._index = index
        self._limits = limits

    def collect(self, *, dry_run: bool) -> tuple[Removed, ...]:
        """Apply retention in steps, then remove files that no artifact names."""
        removed: list[Removed] = []
        while True:
            with self._catalog.locked(make_room=True) as db:
                with transaction(db):
                    now = self.believed_now(db)
                most = None if dry_run else EVICTIONS_PER_PUT
                step = self._due(db, now, most)
                removed += step
                if not dry_run:
                    self.remove(db, [item.artifact_ref for item in step], expired=True)
            if dry_run or not step:
                break
        return (*removed, *self._orphans(now, dry_run=dry_run))

    def _orphans(self, now: float, *, dry_run: bool) -> Iterable[Removed]:
        """Remove the files that no artifact names; those of a lost row are left for repair."""
        with self._catalog.locked(make_room=True) as db:
            settle(db)
            known = rows.known(db)
            sidecars = self._place.sidecars
            lost = sidecars.blobs(set(sidecars.refs()).difference(rows.all_refs(db)))
            orphans = [f for f in self._blobs.files() if f[:2] not in known and f[:2] not in lost]
            self._catalog.check_current(db)
            if not dry_run:
                sidecars.discard()
                for kind, name, _ in orphans:
                    self._blobs.remove(kind, name)
        if not dry_run:
            self._index.forget([sha256 for kind, sha256 in known if kind == "text"])
            self._blobs.sweep_spool(now)
            self.remove_abandoned_runs()
        return (Removed(f"{kind}/{name}", size, "orphan") for kind, name, size in orphans)

    def remove_abandoned_runs(self) -> None:
        """Remove the ephemeral runs whose process ended without doing so."""
        for lease in self._place.leases():
            with claimed(lease) as abandoned:
                if abandoned:
                    run = lease.read_text(encoding="utf-8", errors="replace")
                    if run:
                        self.remove_run(run)
                    lease.unlink()

    def remove_run(self, run: str) -> None:
        """Remove all artifacts of a run, and the index if it has their words."""
        with self._catalog.locked(make_room=True) as db:
            self.remove(db, rows.refs(db, run), expired=True)
            known = rows.known(db)
        self._index.forget([sha256 for kind, sha256 in known if kind == "text"])

    def believed_now(self, db: Connection) -> float:
        """Look at the clock, and return the time by which artifacts expire."""
        clock = rows.clock(db)
        later = clock.look(time.time())
        if later.pending != clock.pending or later.now > clock.now + CLOCK_SECONDS:
            rows.set_clock(db, later)
        return later.now

    def retain(self, db: Connection, now: float) -> None:
        """Apply retention after a put, to EVICTIONS_PER_PUT artifacts at most."""
        if rows.total(db).is_within(self._limits) and not rows.has_overdue(db, now):
            return
        due = self._due(db, now, EVICTIONS_PER_PUT)
        self.remove(db, [removed.artifact_ref for removed in due], expired=True)

    def _due(self, db: Connection, now: float, most: int | None) -> Sequence[Removed]:
        """Return what retention removes, the first ``most`` of it."""
        candidates = rows.overdue(db, now), rows.least_used(db)
        planned = plan(*candidates, rows.total(db), self._limits)
        return [Removed(c.ref, c.bytes, reason) for c, reason in islice(planned, most)]

    def remove(self, db: Connection, refs: Iterable[str], *, expired: bool) -> None:
        """Forget artifacts, and then, still under the lock, unlink what no other shares."""
        refs = list(refs)
        self._place.sidecars.remove(refs)
        with transaction(db):
            unshared = [blob for ref in refs for blob in rows.forget(db, ref, expired=expired)]
        self._catalog.check_current(db)
        for kind, sha256 in unshared:
            self._blobs.remove(kind, sha256)
        _steps.reached("unlinked")
