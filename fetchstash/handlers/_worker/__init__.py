"""The worker: documents are read in processes of their own, under limits, by :mod:`._child`; the pool keeps a few of them."""
