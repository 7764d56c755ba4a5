"""The only place where a result is cut: ceilings, previews, passages, head and tail notices, fences."""

from fetchstash.views._cut import clip, clip_middle, window
from fetchstash.views._limits import PreviewLimits, ViewLimits

__all__ = ["PreviewLimits", "ViewLimits", "clip", "clip_middle", "window"]
