"""The named moments of put and gc at which a kill is tested: a torture test replaces ``reached``, and nothing else does.

put:  measured → locked → renamed → folders_synced → committed → put_done
gc:   locked → committed → unlinked → gc_done
"""


def reached(step: str) -> None:
    """Do nothing: ``step`` is reached."""
