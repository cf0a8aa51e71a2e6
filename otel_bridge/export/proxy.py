"""Which proxy the environment puts between this machine and a backend."""

from __future__ import annotations

import ipaddress
import urllib.request
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine by its name alone: nothing is looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def without_user_info(url: str) -> str:
    """Scheme, host, port and path of a URL: what may be shown of it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def proxy_in_use(url: str) -> str:
    """The proxy that the environment names for `url`, to be shown; empty if there is none or `no_proxy` covers it.

    A loopback address never goes through a proxy, which would look for the backend on its own machine.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return ""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return without_user_info(proxy if "//" in proxy else f"http://{proxy}") if proxy else ""


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
    proxy = proxies.get("grpc") or proxies.get("https") or proxies.get("http")
    return without_user_info(proxy if "//" in proxy else f"http://{proxy}") if proxy else ""


def host_of_target(target: str) -> str:
    """The host of `host:port` or `dns:///host:port`; empty for a target of another kind (a Unix socket)."""
    scheme, separator, rest = target.partition(":///")
    if separator and scheme != "dns":
        return ""
    try:
        return urlsplit(f"//{rest if separator else target}").hostname or ""
    except ValueError:
        return ""
