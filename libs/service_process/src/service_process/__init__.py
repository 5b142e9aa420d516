"""How a service of ours reads its settings, starts, is observed, and stops."""

from service_process.run import run_service
from service_process.settings import ServiceSettings

__all__ = ["ServiceSettings", "run_service"]
