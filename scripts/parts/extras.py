"""Test what .venv does not have: OCR, browser, real shells, LibreOffice, Flask and FastAPI.

    scripts/ci extras

Their environment sees the checkout and the packages of .venv, too, after its own. Chromium, fonts,
the shells, LibreOffice and tesseract, with which the benchmark compares, are Debian's.
"""

import os
import sys
import sysconfig

from scripts.drive.tools import ROOT, debian, node_tool, python_tool
from scripts.parts.checks import SIDE_BY_SIDE, code_of

COMMAND = "#!{python} -P\nimport sys\nfrom fetchstash.cli import main\nsys.exit(main())\n"
TESSERACT = ("ocr", "ocr-rus", "ocr-chi-sim")
OFFICE = tuple(f"libreoffice-{name}" for name in ("writer", "calc", "impress"))
FONTS = ("fonts-liberation", "fonts-dejavu-core", "fonts-noto-cjk")


def main() -> int:
    """Install what can be had, and run its tests; return the exit code of pytest."""
    programs = python_tool("extras")
    if programs is None:
        return 0
    (site,) = programs.parent.glob("lib/python3*/site-packages")
    paths = dict.fromkeys((str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site / "zz-checkout.pth").write_text("".join(f"{path}\n" for path in paths))
    command = programs / "fetchstash"  # which the tests start as a host does
    command.write_text(COMMAND.format(python=programs / "python"))
    command.chmod(0o755)
    tests = ["handlers/test_ocr.py", "server/test_two_calls.py", "test_web_handlers.py"]
    if debian("chromium", "chromium", "chromium-sandbox", "fonts-liberation"):
        tests += ["fetch/test_browser.py", "server/ui/test_browser.py"]
        axe, ext_apps = node_tool("axe"), node_tool("ext-apps")
    else:
        axe = ext_apps = None
    if debian("zsh", "zsh") and debian("fish", "fish"):
        tests.append("cli/test_suggestions.py")
    if debian("soffice", *OFFICE):
        tests.append("handlers/test_round_trips.py")
    debian("tesseract", *(f"tesseract-{name}" for name in TESSERACT), *FONTS)
    folders = {"AXE_FOLDER": str(axe or ""), "EXT_APPS_FOLDER": str(ext_apps or "")}
    environment = {**os.environ, "PYTHONSAFEPATH": "1", **folders}
    words = [str(programs / "python"), "-m", "pytest", "-rs", "--no-header"]
    words += [f"tests/{test}" for test in tests]
    name = "tests of the extras"
    return code_of(name, words, environment, "-q", *SIDE_BY_SIDE, cache="extras")


if __name__ == "__main__":
    sys.exit(main())
