"""The worker: processes that read documents under limits, and the pool that keeps a few of them."""
