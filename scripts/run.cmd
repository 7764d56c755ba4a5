@echo off
rem Runs fetchstash from this checkout on Windows; makes .venv on the first run.
rem -P keeps modules of the working directory out. `scripts\run.cmd` alone serves MCP over stdio.
setlocal
set "here=%~dp0"
for %%p in ("%PYTHON%" "py -3" "python3" "python") do (
  if not "%%~p"=="" (
    %%~p -c "import sys; sys.exit(sys.version_info < (3, 11))" >nul 2>nul && (
      %%~p -P "%here%setup.py" run %*
      exit /b
    )
  )
)
echo fetchstash: Python 3.11 or newer is needed. Install one, or set PYTHON to its path. 1>&2
exit /b 1
