"""What every room needs of the machine and of Python: telemetry, processes, folders, imports."""
