"""Source code and Markdown: kept as they are, with symbols and headings as the outline."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Format, Head, Hints, Part, Sniffed
from fetchstash.handlers._parts import Reading, Streamed
from fetchstash.handlers._prose import MAX_HEADINGS, find_headings
from fetchstash.text import counted
from fetchstash.text.ranges import Heading

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

FILE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "makefile": "make",
        "gnumakefile": "make",
        "dockerfile": "dockerfile",
        "cmakelists.txt": "cmake",
        "rakefile": "ruby",
        "gemfile": "ruby",
        "jenkinsfile": "groovy",
        "vagrantfile": "ruby",
        "build": "starlark",
        "build.bazel": "starlark",
    }
)

INTERPRETERS: Mapping[str, str] = MappingProxyType(
    {
        "python": "python",
        "node": "javascript",
        "deno": "typescript",
        "ruby": "ruby",
        "perl": "perl",
        "php": "php",
        "lua": "lua",
        "bash": "shell",
        "sh": "shell",
        "zsh": "shell",
        "dash": "shell",
        "ksh": "shell",
        "fish": "shell",
        "awk": "awk",
        "rscript": "r",
        "pwsh": "powershell",
        "tclsh": "tcl",
        "make": "make",
    }
)
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


def sniff_script(head: Head) -> Sniffed | None:
    """Recognise scripts by their first line, and diffs."""
    text = head.text
    language = language_of_shebang(text.split("\n", 1)[0])
    if language:
        return Sniffed(f"text/x-{language}", f"#! line of {language}")
    if re.match(r"\s*<\?php\s", text):
        return Sniffed("text/x-php", "<?php")
    if re.match(r"(?:diff --git |--- \S.*\n\+\+\+ \S.*\n@@ )", text):
        return Sniffed("text/x-diff", "diff")
    return None


_INDENT_OF_A_LEVEL = 4

# Lines that define something, by language: an outline needs no parser. Group 1 is the indent, group
# 2 the symbol with its keyword.
_TYPES = (
    r"(?:class|struct|interface|enum|union|namespace|record|trait|object|protocol|extension|module)"
)
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|virtual"
    r"|async|inline|export|default|data|const|suspend|extern|partial|readonly|unsafe"
    r"|pub(?:\([\w ]+\))?|declare)\s+)*"
)
_PATTERNS = {
    "python": r"([ \t]*)((?:async\s+)?(?:def|class)\s+\w+)",
    "javascript": (
        rf"([ \t]*){_MODIFIERS}((?:function\s*\*?|class|interface|enum|namespace|type)\s+[\w$]+"
        r"|(?:const|let|var)\s+[\w$]+(?=\s*=\s*(?:async\s*)?(?:function|\(|[\w$]+\s*=>)))"
    ),
    "go": r"()((?:func(?:\s*\([^)\n]*\))?|type)\s+\w+)",
    "rust": (
        rf"([ \t]*){_MODIFIERS}((?:fn|struct|enum|trait|mod|union|macro_rules!|impl(?:<[^>\n]*>)?)"
        r"\s+[\w:<>' ]*\w)"
    ),
    "java": (
        rf"([ \t]*){_MODIFIERS}((?:{_TYPES}|fun|func|def|fn)\s+\w+"
        r"|(?:[\w<>\[\],.?]+\s+)?\w+(?=\s*\([^;\n]*\)\s*(?:throws [\w, .]+)?\{\s*$))"
    ),
    "c": (
        rf"()((?:typedef\s+)?{_TYPES}\s+\w+(?=\s*(?:[:{{]|$))"
        r"|(?:[\w:~<>*&]+\s+)+[*&]*[\w:~]+(?=\s*\([^;\n]*(?:\)\s*(?:const\s*)?\{?)?\s*$)"
        r"|#\s*define\s+\w+(?=\())"
    ),
    "ruby": r"([ \t]*)((?:def|class|module)\s+[\w.:?!=]+)",
    "php": rf"([ \t]*){_MODIFIERS}((?:function|class|interface|trait|enum|namespace)\s+[\w\\]+)",
    "shell": r"()((?:function\s+)?[\w:.-]+\s*\(\)|function\s+[\w:.-]+)",
    "sql": (
        r"()(CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+|UNIQUE\s+)?"
        r"(?:TABLE|VIEW|INDEX|FUNCTION|PROCEDURE|TRIGGER|TYPE|SCHEMA)\s+"
        r"(?:IF\s+NOT\s+EXISTS\s+)?[\w.\"`]+)"
    ),
    "lua": r"([ \t]*)((?:local\s+)?function\s+[\w.:]+)",
    "perl": r"([ \t]*)((?:sub|package)\s+[\w:]+)",
    "elixir": r"([ \t]*)((?:defmodule|defp?|defmacro|defprotocol)\s+[\w.?!]+)",
    "haskell": r"()((?:data|newtype|class|instance|type)\s+\w+|\w+(?=\s+::))",
    "diff": r"()(diff --git .+|\+\+\+ .+)",
    "make": r"()([\w./%-]+(?=\s*::?(?!=)))",
    "protobuf": r"([ \t]*)((?:message|enum|service|rpc)\s+\w+)",
    "graphql": r"()((?:type|input|enum|interface|union|scalar|query|mutation|fragment)\s+\w+)",
    "terraform": r"()((?:resource|module|variable|output|data|provider)\s+[\w\" -]+)",
    "css": r"()(@(?:media|keyframes|font-face|layer)\b[^{\n]*)",
    "dockerfile": r"()(FROM\s+\S+(?:\s+AS\s+\w+)?)",
}
_RELATIVES = {
    "typescript": "javascript",
    "vue": "javascript",
    "svelte": "javascript",
    "c++": "c",
    "objective-c": "c",
    "cuda": "c",
    "c#": "java",
    "kotlin": "java",
    "scala": "java",
    "swift": "java",
    "dart": "java",
    "groovy": "java",
    "solidity": "java",
    "scss": "css",
    "less": "css",
    "julia": "lua",
    "powershell": "lua",
}
# Words that stand before a bracket and a brace without defining anything.
_NO_SYMBOLS = re.compile(
    r"(?:else\s+)?(?:if|for|while|switch|catch|return|do|else|try|new|synchronized|using|lock|with"
    r"|case|throw)\b"
)
_MAX_LINE = 300


class CodeHandler(Streamed):
    """Source code, as it is written."""

    name = "code"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the text with its symbols; ``structure_info`` names the language."""
        language = _language(extracted.hints)
        symbols = 0
        for chunk in read_text(source, extracted.hints.charset):
            language = language or language_of_shebang(chunk.split("\n", 1)[0])
            headings = find_symbols(chunk, language)
            symbols += len(headings)
            yield Part(chunk, headings=tuple(headings))
        symbols_found = [f"{symbols:,} symbols"] if symbols else []
        extracted.learn(structure_info=", ".join([language or "code", *symbols_found]))


def _language(hints: Hints) -> str:
    named = language_of_name(hints.name) or language_of_name(
        urlsplit(hints.url).path.rpartition("/")[2]
    )
    sub_type = hints.media_type.partition("/")[2].removeprefix("x-").replace("-", " ")
    return named or (sub_type if sub_type in LANGUAGES.values() else "")


def find_symbols(text: str, language: str) -> list[Heading]:
    """Return the definitions in ``text`` as headings; a level is four columns of indent."""
    language = _RELATIVES.get(language, language)
    if language not in _PATTERNS:
        return []
    pattern = re.compile(_PATTERNS[language], re.IGNORECASE if language == "sql" else 0)
    symbols: list[Heading] = []
    for number, line in enumerate(text.split("\n"), 1):
        definition = pattern.match(line[:_MAX_LINE])
        if definition and not _NO_SYMBOLS.match(definition[2]):
            level = 1 + len(definition[1].expandtabs(_INDENT_OF_A_LEVEL)) // _INDENT_OF_A_LEVEL
            symbols.append(Heading(" ".join(definition[2].split()), level, "lines", number))
    return symbols


_WORDS = {
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "sql": "SQL",
    "php": "PHP",
    "css": "CSS",
    "scss": "SCSS",
}
# Media types of a language besides ``text/x-LANGUAGE``.
_MEDIA_TYPES = {
    "css": "text/css",
    "diff": "text/x-patch",
    "graphql": "application/graphql",
    "javascript": "text/javascript application/javascript application/x-javascript"
    " text/ecmascript application/ecmascript",
    "json5": "application/json5",
    "perl": "application/x-perl",
    "php": "application/x-httpd-php",
    "python": "application/x-python-code",
    "shell": "application/x-sh application/x-shellscript",
    "sql": "application/sql",
    "typescript": "application/typescript application/x-typescript",
    "webassembly": "application/wasm-text",
}


def _format_of(language: str) -> Format:
    word = "diff" if language == "diff" else f"{_WORDS.get(language, language.capitalize())} code"
    return Format(
        kind="code",
        word=word,
        handler=CodeHandler,
        media_types=(
            f"text/x-{language.replace(' ', '-')}",
            *_MEDIA_TYPES.get(language, "").split(),
        ),
        extensions=tuple(end for end, named in LANGUAGES.items() if named == language),
        file_names=tuple(name for name, named in FILE_NAMES.items() if named == language),
        is_text=True,
    )


_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*\n")
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)
_FRONT_REACH = 16_384


class MarkdownHandler(Streamed):
    """Markdown, as it is written."""

    name = "markdown"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the text with its headings."""
        fence = ""
        sections = 0
        for number, chunk in enumerate(read_text(source, extracted.hints.charset)):
            front = _FRONT_MATTER.match(chunk[:_FRONT_REACH]) if number == 0 else None
            title = _FRONT_TITLE.search(front[0]) if front else None
            if title:
                extracted.learn(title=title[1])
            start = front.end() if front else 0
            headings, fence = find_headings(chunk, fence, start, MAX_HEADINGS - sections)
            sections += len(headings)
            if not extracted.facts.title and headings:
                extracted.learn(title=headings[0].title)
            yield Part(chunk, headings=tuple(headings))
        more = " or more" if sections == MAX_HEADINGS else ""
        extracted.learn(structure_info=f"{counted(sections, 'heading')}{more}" if sections else "")


def sniff_markdown(head: Head) -> Sniffed | None:
    """Recognise Markdown by a heading and two more of its marks.

    A comment in a script may look like a heading, but nothing else there is a link.
    """
    text = head.text
    marks = [
        bool(re.search(r"^#{1,6} \S", text, re.MULTILINE)),
        bool(re.search(r"^##{1,5} \S", text, re.MULTILINE)),
        bool(re.search(r"^(?:```|~~~)[\w+-]*\s*$", text, re.MULTILINE)),
        bool(re.search(r"\[[^\[\]\n]+\]\((?:https?://|[./#])[^)\s]*\)", text)),
        bool(re.search(r"^\|?[ \t]*:?-{3,}:?[ \t]*\|", text, re.MULTILINE)),
    ]
    if marks[0] and sum(marks) >= 3:
        return Sniffed("text/markdown", "headings and other marks of Markdown", full=False)
    return None


_MARKDOWN = Format(
    kind="markdown",
    word="Markdown",
    handler=MarkdownHandler,
    media_types=("text/markdown", "text/x-markdown", "text/x-web-markdown"),
    extensions=("md", "markdown", "mdx"),
    sniff=sniff_markdown,
    is_text=True,
)

FORMATS = (
    Format(
        kind="code",
        word="code",
        handler=CodeHandler,
        media_types=("text/x-*",),
        sniff=sniff_script,
        is_text=True,
    ),
    *map(_format_of, dict.fromkeys((*LANGUAGES.values(), *FILE_NAMES.values()))),
    _MARKDOWN,
)
