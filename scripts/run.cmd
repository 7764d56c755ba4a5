@echo off
rem Runs fetchstash from this checkout on Windows; makes .venv on the first run. `scripts\run.cmd` alone serves MCP over stdio.
rem The environment's own Python comes last: a host that was started from a desktop may know no other.
setlocal
set "here=%~dp0"
set "interpreter="
if defined PYTHON call :try "%PYTHON%"
if not defined interpreter call :try py -3
if not defined interpreter call :try python3
if not defined interpreter call :try python
if not defined interpreter call :try "%here%..\.venv\Scripts\python.exe"
if not defined interpreter (
  echo fetchstash: Python 3.11 or newer is needed, and none was found. Install one, or name it in PYTHON. 1>&2
  exit /b 1
)
rem -P keeps modules of the working directory out; `call`, because a Python may be a batch file (pyenv).
call %interpreter% -P "%here%setup.py" run %*
exit /b %errorlevel%

:try
call %* -c "import sys; sys.exit(sys.version_info < (3, 11))" >nul 2>nul
if not errorlevel 1 set "interpreter=%*"
exit /b
