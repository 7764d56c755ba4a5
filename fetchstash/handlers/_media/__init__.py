"""Audio and video: what their containers say."""
