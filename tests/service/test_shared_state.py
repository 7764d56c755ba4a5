"""What the process of a service shares between tenants: all of it is listed here, and argued."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fetchstash

ROOT = Path(fetchstash.__file__).parent
# These rooms are of other processes: the agent's, the command's, the gateway's, the view's.
_OTHER_PROCESSES = {"client", "cli", "gateway"}

_CODE = "made of our own code and tables alone, the same for every caller"
_WORKER = "used by handlers, in a worker, which serves one tenant until it ends"
_WORDS = (
    "a pure function of one word, kept for speed: a hit saves 0.2 microseconds, once for each word "
    "and never again, which no caller over a network can tell from a miss; nothing lists the words"
)
_LOCAL = "of library and command; no tool over HTTP comes here"

SHARED = {
    "fetch/_cookies.py:_is_public_suffix": _CODE,  # the list of a package
    "fetch/_rules.py:_pattern": _CODE,
    "handlers/_data/_json_paths.py:compiled": _WORKER,
    "handlers/_data/_query.py:_parser": _WORKER,
    "handlers/_dates.py:_months": _CODE,
    "handlers/_html/_byline.py:_parted": _WORKER,
    "handlers/_html/_features.py": _WORKER,
    "handlers/_html/_hidden.py": _WORKER,
    "handlers/_html/_content.py": _WORKER,
    "handlers/_html/_media.py": _WORKER,
    "handlers/_ocr.py": _WORKER,
    "handlers/_registry.py:built_in": _CODE,
    "handlers/_registry.py:reasons": _CODE,
    "handlers/_registry.py:handler_of": _WORKER,
    "handlers/_data/_number_formats.py:formatter": _WORKER,
    "handlers/_html/_blocks.py:_names_post": _WORKER,
    "handlers/_html/_signs.py:drawn": _WORKER,
    "handlers/_html/_repairs.py:_is_in": _WORKER,
    "handlers/_html/_style.py:read_style": _WORKER,
    "handlers/_pdf/_handler.py:layers_off": _WORKER,
    "handlers/_pdf/_words.py:unchecked": _WORKER,
    "handlers/_symbols.py:_table": _WORKER,
    "handlers/_symbols.py:_tables": _CODE,
    "handlers/_worker/_plugins.py": _WORKER,
    "text/hygiene.py:_meaningless": _CODE,
    "system/linelog.py": "logs by path: each line names its own; the lock is held for one write",
    "results.py": _LOCAL,
    "server/_stdio.py:tools": "the two lists of tools, with the one that deletes and without",
    "server/ui/_serve.py": "the page of the view, made of the package's own file",
    "service/_observed.py:_worker": "the number of this process, set once as it starts",
    "service/_request.py:_current": "a context variable: each request has its own",
    "stash/_open.py:_left_open": _LOCAL,
    "stash/_open.py:_watched": _LOCAL,
    "store/_contract.py:_names": _CODE,
    "store/_contract.py:_values": _CODE,
    "store/_reader.py:_COMPILING": "RE2 holds the interpreter meanwhile: all wait for it anyway",
    "store/_pool.py:_bounded_connection": _CODE,
    "store/_pool.py:_pools": "by the database's URL; each transaction sets its tenant's schema",
    "store/_pool.py:_pools_lock": "held while a pool is looked up",
    "store/_rows.py:_defaults": _CODE,
    "store/_rank.py:stems": _WORDS,
    "store/_rank.py:_word": _CODE,
    "store/_threads.py:_idle": "processes that rank: what one has open is by store and tenant",
    "store/_threads.py:_lock": "held while an idle process is taken or given back",
    "store/_limits.py:_projects": "projects of this machine; a tenant has one run and no folder",
    "system/telemetry.py": "instruments by name; events go to the task's tenant's log (_task_log)",
    "text/walls.py:_compiled": _CODE,
    "text/tokens.py": "the vocabulary, and the lock for loading it",
}
"""File, or file and name, and why sharing it tells no tenant of another."""

_CACHES = {"cache", "lru_cache"}
_MUTABLE = {
    "dict",
    "list",
    "set",
    "bytearray",
    "deque",
    "defaultdict",
    "OrderedDict",
    "Counter",
    "local",
    "Lock",
    "RLock",
    "ContextVar",
    "WeakValueDictionary",
    "WeakKeyDictionary",
    "WeakSet",
    "CapacityLimiter",
    "Semaphore",
    "ThreadPoolExecutor",
}


def shared_state(path: Path) -> Iterator[str]:
    """Return the names of caches, empty containers, locks and context variables of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if _name(decorator) in _CACHES:
                    yield node.name
        elif isinstance(node, ast.Global):
            yield from node.names
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and _is_mutable(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _name(node: ast.expr) -> str:
    """Return the last name of an expression: ``cache`` of ``functools.cache`` and ``cache()``."""
    if isinstance(node, ast.Call | ast.Subscript):
        return _name(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List):
        return not value.elts
    return isinstance(value, ast.Call) and _name(value) in _MUTABLE


def test_all_that_tenants_share_in_the_process_is_known_and_argued() -> None:
    unknown: list[str] = []
    used: set[str] = set()
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file.split("/")[0] in _OTHER_PROCESSES:
            continue
        for name in shared_state(path):
            keys = {file, f"{file}:{name}"} & set(SHARED)
            used |= keys
            if not keys:
                unknown.append(f"{file}:{name}")
    assert not unknown, "shared by all tenants: keep it in a room of each, or say why it is safe"
    assert used == set(SHARED), "no longer there"
