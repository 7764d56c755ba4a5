"""Artifacts, kept and read back. Knows disks; knows no network and no format."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.store._contract import (
        CleanUp,
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
        Usage,
        keep_store_facts,
        new_facts,
        stamp,
    )
    from fetchstash.store._counts import CLEANED, Counts
    from fetchstash.store._limits import (
        ALL_RUNS,
        AUTO_RUN,
        DEFAULT_RUN,
        REF_PREFIX,
        StoreLimits,
        View,
        bucket_url,
        folder_run,
        is_shared,
        person_run,
        project_of,
        project_run,
        store_folder,
        store_of_tenant,
        with_run,
    )
    from fetchstash.store._objects import MemoryObjects, Objects, open_objects
    from fetchstash.store._open import (
        Copied,
        Progress,
        check_store,
        copy_service,
        copy_store,
        open_existing,
        open_store,
        open_whole,
        remove_rest,
        stores_of,
        tenants_of,
    )
    from fetchstash.store._protocol import ArtifactStore
    from fetchstash.store._rank import COMMON, language_of, stems, words
    from fetchstash.store._reader import Pattern, TextReader, compile_pattern, count_matches
    from fetchstash.store._text import ByteSource, StoredText, StrideIndex
    from fetchstash.store._threads import Turns

__all__ = [
    "ALL_RUNS",
    "AUTO_RUN",
    "CLEANED",
    "COMMON",
    "DEFAULT_RUN",
    "REF_PREFIX",
    "ArtifactStore",
    "ByteSource",
    "CleanUp",
    "Copied",
    "Counts",
    "Facts",
    "Finding",
    "GrepQuery",
    "Line",
    "Listing",
    "Matches",
    "MemoryObjects",
    "Objects",
    "Passage",
    "Pattern",
    "Progress",
    "Removed",
    "Run",
    "SearchResult",
    "StoreLimits",
    "StoredText",
    "StrideIndex",
    "TextReader",
    "Turns",
    "Usage",
    "View",
    "bucket_url",
    "check_store",
    "compile_pattern",
    "copy_service",
    "copy_store",
    "count_matches",
    "folder_run",
    "is_shared",
    "keep_store_facts",
    "language_of",
    "new_facts",
    "open_existing",
    "open_objects",
    "open_store",
    "open_whole",
    "person_run",
    "project_of",
    "project_run",
    "remove_rest",
    "stamp",
    "stems",
    "store_folder",
    "store_of_tenant",
    "stores_of",
    "tenants_of",
    "with_run",
    "words",
]

_MODULES = {
    "_contract": (
        "CleanUp Facts Finding GrepQuery Line Listing Matches Passage Removed Run "
        "SearchResult Usage keep_store_facts new_facts stamp"
    ),
    "_counts": "CLEANED Counts",
    "_limits": (
        "ALL_RUNS AUTO_RUN DEFAULT_RUN REF_PREFIX StoreLimits View bucket_url folder_run "
        "is_shared person_run project_of project_run store_folder store_of_tenant with_run"
    ),
    "_objects": "MemoryObjects Objects open_objects",
    "_open": (
        "Copied Progress check_store copy_service copy_store open_existing open_store open_whole "
        "remove_rest stores_of "
        "tenants_of"
    ),
    "_protocol": "ArtifactStore",
    "_threads": "Turns",
    "_rank": "COMMON language_of stems words",
    "_reader": "Pattern TextReader compile_pattern count_matches",
    "_text": "ByteSource StoredText StrideIndex",
}
__getattr__ = lazy_names(__name__, _MODULES)
