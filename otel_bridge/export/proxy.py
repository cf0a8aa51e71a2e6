"""Which proxy the environment puts between this machine and a backend."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

from otel_bridge.errors import SettingError
from otel_bridge.urls import read_url, without_user_info


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine by its name alone: nothing is looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_in_use(url: str) -> str:
    """The proxy that the environment names for `url`, to be shown; empty if there is none or `no_proxy` covers it.

    A loopback address never goes through a proxy, which would look for the backend on its own machine. Raises
    SettingError, which names the variable, where the proxy is no URL.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return ""
    return _shown(urllib.request.getproxies(), parts.scheme, "all")


def proxy_urls() -> list[str]:
    """Every proxy that the environment names, with its user info: not to be shown."""
    proxies = urllib.request.getproxies_environment().values()
    return [proxy if "://" in proxy else f"http://{proxy}" for proxy in proxies]


def grpc_proxy_in_use(target: str) -> str:
    """The same for a gRPC target; its library looks at `grpc_proxy`, `https_proxy` and `http_proxy`, in this order."""
    host = host_of_target(target)
    proxies = urllib.request.getproxies_environment()
    if not host or is_loopback(host) or urllib.request.proxy_bypass(host):
        return ""
    return _shown(proxies, "grpc", "https", "http")


def _shown(proxies: Mapping[str, str], *kinds: str) -> str:
    """The first proxy that there is of these kinds, in the form in which it may be shown.

    Raises SettingError where it is no URL.
    """
    kind = next((kind for kind in kinds if proxies.get(kind)), None)
    if kind is None:
        return ""
    name = f"{kind}_proxy"
    proxy = proxies[kind] if "//" in proxies[kind] else f"http://{proxies[kind]}"
    example = "http://proxy:3128"
    source = name if os.environ.get(name) else name.upper()
    if not read_url(proxy, source, example).hostname:
        raise SettingError(f"{source}: the URL names no host", f"write it as in {example}")
    return without_user_info(proxy)


def host_of_target(target: str) -> str:
    """The host of `host:port` or `dns:///host:port`; empty for a target of another kind (a Unix socket)."""
    scheme, separator, rest = target.partition(":///")
    if separator and scheme != "dns":
        return ""
    try:
        return urlsplit(f"//{rest if separator else target}").hostname or ""
    except ValueError:
        return ""
