"""A recording endpoint in front of the solver's: any agent program pointed at it becomes a policy."""

from envsynth.proxy.record import ProxiedCall, Record, read_record
from envsynth.proxy.server import Proxy
from envsynth.proxy.upstream import Upstream

__all__ = ["ProxiedCall", "Proxy", "Record", "Upstream", "read_record"]
