"""The named moments of put and gc at which a kill is tested. Only a test replaces ``reached``.

put:  measured → locked → renamed → folders_synced → committed → put_done
gc:   locked → committed → unlinked → gc_done
"""


def reached(step: str) -> None:
    """Do nothing: ``step`` is reached."""
