"""What OpenTelemetry is told of this replica: service, version, instance."""

import os
import socket
from typing import TYPE_CHECKING

from fetchstash import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource


def resource() -> "Resource":
    """Return the resource; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are stronger."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415 - extra

    own = Resource(
        {
            "service.name": "fetchstash",
            "service.version": __version__,
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
        }
    )
    return own.merge(OTELResourceDetector().detect())
