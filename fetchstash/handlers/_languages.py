"""Programming languages by extension, file name and interpreter."""

from collections.abc import Mapping
from types import MappingProxyType

LANGUAGES: Mapping[str, str] = MappingProxyType({
    "py": "python", "pyi": "python", "pyw": "python", "js": "javascript", "mjs": "javascript",
    "cjs": "javascript", "jsx": "javascript", "ts": "typescript", "mts": "typescript",
    "cts": "typescript", "tsx": "typescript", "vue": "vue", "svelte": "svelte", "c": "c", "h": "c",
    "cc": "c++", "cpp": "c++", "cxx": "c++", "hh": "c++", "hpp": "c++", "hxx": "c++",
    "m": "objective-c", "mm": "objective-c", "cs": "c#", "fs": "f#", "vb": "visual basic",
    "java": "java", "kt": "kotlin", "kts": "kotlin", "scala": "scala", "groovy": "groovy",
    "gradle": "groovy", "clj": "clojure", "cljs": "clojure", "go": "go", "rs": "rust",
    "swift": "swift", "dart": "dart", "rb": "ruby", "php": "php", "pl": "perl", "pm": "perl",
    "lua": "lua", "r": "r", "jl": "julia", "ex": "elixir", "exs": "elixir", "erl": "erlang",
    "hs": "haskell", "ml": "ocaml", "mli": "ocaml", "elm": "elm", "nim": "nim", "zig": "zig",
    "v": "verilog", "sv": "verilog", "vhd": "vhdl", "asm": "assembly", "s": "assembly",
    "f90": "fortran", "f": "fortran", "pas": "pascal", "ada": "ada", "adb": "ada", "lisp": "lisp",
    "el": "lisp", "scm": "scheme", "rkt": "racket", "sh": "shell", "bash": "shell", "zsh": "shell",
    "fish": "shell", "ps1": "powershell", "bat": "batch", "cmd": "batch", "sql": "sql",
    "css": "css", "scss": "scss", "sass": "sass", "less": "less", "graphql": "graphql",
    "proto": "protobuf", "thrift": "thrift", "cmake": "cmake", "mk": "make", "tf": "terraform",
    "hcl": "terraform", "nix": "nix", "diff": "diff", "patch": "diff", "sol": "solidity",
    "json5": "json5", "jsonc": "json5", "wat": "webassembly", "glsl": "glsl", "cu": "cuda",
    "d": "d", "awk": "awk", "vim": "vim script",
})  # fmt: skip

FILE_NAMES: Mapping[str, str] = MappingProxyType({
    "makefile": "make", "gnumakefile": "make", "dockerfile": "dockerfile",
    "cmakelists.txt": "cmake", "rakefile": "ruby", "gemfile": "ruby", "jenkinsfile": "groovy",
    "vagrantfile": "ruby", "build": "starlark", "build.bazel": "starlark",
})  # fmt: skip

INTERPRETERS: Mapping[str, str] = MappingProxyType({
    "python": "python", "node": "javascript", "deno": "typescript", "ruby": "ruby", "perl": "perl",
    "php": "php", "lua": "lua", "bash": "shell", "sh": "shell", "zsh": "shell", "dash": "shell",
    "ksh": "shell", "fish": "shell", "awk": "awk", "rscript": "r", "pwsh": "powershell",
    "tclsh": "tcl", "make": "make",
})  # fmt: skip
"""Interpreters by the name that a ``#!`` line gives, without version."""


def language_of_name(name: str) -> str:
    """Return the language of a file by its name, "" if none."""
    name = name.lower()
    return FILE_NAMES.get(name) or LANGUAGES.get(name.rpartition(".")[2] if "." in name else "", "")


def language_of_shebang(first_line: str) -> str:
    """Return the language of a script by its ``#!`` line, "" if it has none."""
    if not first_line.startswith("#!"):
        return ""
    words = first_line[2:].split()
    if words and words[0].endswith("/env"):
        words = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
    name = words[0].rpartition("/")[2].lower().rstrip("0123456789.") if words else ""
    return INTERPRETERS.get(name, "shell" if name else "")
