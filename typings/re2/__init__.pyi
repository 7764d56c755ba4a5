class error(Exception):
    args: tuple[bytes]

class Options:
    max_mem: int
    log_errors: bool
    never_nl: bool
    never_capture: bool
    case_sensitive: bool

class _Match:
    def span(self) -> tuple[int, int]: ...

class _Regexp:
    programsize: int

    def search(
        self, text: bytes | bytearray, pos: int | None = None, endpos: int | None = None
    ) -> _Match | None: ...

class Set:
    @classmethod
    def SearchSet(cls) -> Set: ...
    def Add(self, pattern: str) -> int: ...
    def Compile(self) -> None: ...
    def Match(self, text: bytes) -> list[int] | None: ...

def compile(pattern: bytes, options: Options | None = None) -> _Regexp: ...
def escape(pattern: bytes) -> bytes: ...
def purge() -> None: ...
