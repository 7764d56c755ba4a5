"""Artifacts, kept and read back. Knows disks; knows no network and no format."""

from fetchstash.store._base import StoreBase
from fetchstash.store._bucket import bucket_url
from fetchstash.store._contract import (
    ALL_RUNS,
    AUTO_RUN,
    DEFAULT_RUN,
    REF_PREFIX,
    Facts,
    Finding,
    GrepQuery,
    Line,
    Listing,
    Matches,
    Passage,
    Removed,
    Run,
    SearchResult,
    StoreLimits,
)
from fetchstash.store._grep import Pattern, compile_pattern, count_matches
from fetchstash.store._local import LocalStore
from fetchstash.store._memory import MemoryContents, MemoryStore
from fetchstash.store._objects import (
    BucketObjects,
    FolderObjects,
    MemoryObjects,
    Objects,
    open_objects,
)
from fetchstash.store._open import (
    check_store,
    lifecycle_rules,
    open_store,
    repair_store,
    set_lifecycle,
    store_folder,
    store_of_tenant,
)
from fetchstash.store._protocol import ArtifactStore
from fetchstash.store._rank import rank_texts
from fetchstash.store._reader import TextReader
from fetchstash.store._runs import folder_run, project_of, project_run, with_run
from fetchstash.store._source import ByteSource, BytesSource
from fetchstash.store._stamp import keep_store_facts, new_facts, stamp
from fetchstash.store._stride import StrideIndex
from fetchstash.store._text import StoredText

__all__ = [
    "ALL_RUNS",
    "AUTO_RUN",
    "DEFAULT_RUN",
    "REF_PREFIX",
    "ArtifactStore",
    "BucketObjects",
    "ByteSource",
    "BytesSource",
    "Facts",
    "Finding",
    "FolderObjects",
    "GrepQuery",
    "Line",
    "Listing",
    "LocalStore",
    "Matches",
    "MemoryContents",
    "MemoryObjects",
    "MemoryStore",
    "Objects",
    "Passage",
    "Pattern",
    "Removed",
    "Run",
    "SearchResult",
    "StoreBase",
    "StoreLimits",
    "StoredText",
    "StrideIndex",
    "TextReader",
    "bucket_url",
    "check_store",
    "compile_pattern",
    "count_matches",
    "folder_run",
    "keep_store_facts",
    "lifecycle_rules",
    "new_facts",
    "open_objects",
    "open_store",
    "project_of",
    "project_run",
    "rank_texts",
    "repair_store",
    "set_lifecycle",
    "stamp",
    "store_folder",
    "store_of_tenant",
    "with_run",
]
