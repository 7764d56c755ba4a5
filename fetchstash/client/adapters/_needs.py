"""The error of an adapter whose SDK is missing or too old: what is there, and what is needed."""

from importlib.metadata import PackageNotFoundError, version
from types import TracebackType


class Needs:
    """Explains a failed import inside its block.

    ``package`` at ``minimum`` or later is what the extra ``extra`` of pyproject.toml asks for.
    """

    def __init__(self, extra: str, package: str, minimum: str) -> None:
        self.extra, self.package, self.minimum = extra, package, minimum

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if not isinstance(error, ImportError):
            return
        try:
            found = f"version {version(self.package)} is installed"
        except PackageNotFoundError:
            found = "it is not installed"
        raise ImportError(
            f"This adapter needs {self.package} {self.minimum} or later, and {found} ({error}). "
            f"Install it with: pip install 'fetchstash[{self.extra}]'"
        ) from error
