"""OTLP over HTTP, through the SDK's exporter, whose `session` argument is where a reply can be seen.

The exporter brings what the OTEL_EXPORTER_OTLP_* variables ask for (it reads certificates and client keys by itself).
Its own reading of replies would lose spans: it says only success or failure, takes a redirect for a success, and drops
what it could not send. So it is handed no spans at all: the session puts the body in place, keeps the reply, and tells
the exporter that all is well, which also keeps it from trying again by itself.
"""

from __future__ import annotations

import gzip
import socket
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from http.client import BadStatusLine, HTTPException, IncompleteRead, RemoteDisconnected
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3.exceptions
from requests import exceptions

from otel_bridge.export.deadline import Deadline, WatchedAdapter
from otel_bridge.export.proxy import is_loopback, proxy_in_use, proxy_urls
from otel_bridge.export.reply import MAX_REPLY_BYTES, HttpReply, NoReply, NotSent, Reply
from otel_bridge.export.sdk_variables import unusable_put_aside
from otel_bridge.export.secrets import Secrets
from otel_bridge.settings import ExportSettings
from otel_bridge.urls import without_user_info

with unusable_put_aside():
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

# Each class of `requests.exceptions` is in one of the two (a test holds this): what may pass by itself ...
TRANSIENT_ERRORS: tuple[type[Exception], ...] = (
    exceptions.ConnectionError,
    exceptions.ProxyError,
    exceptions.SSLError,
    exceptions.Timeout,
    exceptions.ConnectTimeout,
    exceptions.ReadTimeout,
    exceptions.ChunkedEncodingError,
    exceptions.ContentDecodingError,
    exceptions.RetryError,
    exceptions.HTTPError,
    exceptions.StreamConsumedError,
    exceptions.UnrewindableBodyError,
    exceptions.InvalidJSONError,
    exceptions.JSONDecodeError,
)
# ... and what stays until a setting is changed.
SETTING_ERRORS: tuple[type[Exception], ...] = (
    exceptions.URLRequired,
    exceptions.MissingSchema,
    exceptions.InvalidSchema,
    exceptions.InvalidURL,
    exceptions.InvalidHeader,
    exceptions.InvalidProxyURL,
    exceptions.TooManyRedirects,
)


_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
"""What OpenSSL, by its version, says of an answer in plain text."""


class HttpTransport:
    """Sends requests over one connection that is kept open; see `otel_bridge.export.transport.Transport`."""

    def __init__(self, settings: ExportSettings) -> None:
        self.endpoint = without_user_info(settings.endpoint)
        self.proxy = proxy_in_use(settings.endpoint)
        self._session = _Session(settings)
        with unusable_put_aside():
            self._exporter = OTLPSpanExporter(
                endpoint=settings.endpoint,
                headers=dict(settings.headers),
                timeout=settings.timeout_s,
                compression=Compression(settings.compression.value),
                session=self._session,
            )

    def send(self, body: bytes) -> Reply:
        """POST `body`, packed as the settings ask, and wait for the answer. Raises nothing that a network can cause."""
        self._session.body = body
        self._exporter.export(())
        return replace(self._session.reply, secrets=self._session.secrets)

    def close(self) -> None:
        self._session.close()


class _Session(requests.Session):
    """What the SDK's exporter takes for its session."""

    def __init__(self, settings: ExportSettings) -> None:
        super().__init__()
        self.body = b""
        self.reply: Reply = NotSent("nothing was sent")
        self._endpoint = settings.endpoint
        self._timeout_s = settings.timeout_s
        self._deadline = Deadline(settings.timeout_s)
        for scheme in ("http://", "https://"):
            self.mount(scheme, WatchedAdapter(self._deadline))
        self._was_answered = False
        self._is_direct = is_loopback(urlsplit(settings.endpoint).hostname or "")
        self._given_headers = settings.headers
        self._authorization = ""
        self.secrets = self._known_secrets({})
        if "authorization" in settings.headers:
            # Without an `auth` of its own a session takes ~/.netrc's, in place of the header that was given.
            self.auth = _unchanged

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send it, and know what was sent: credentials may be ~/.netrc's too."""
        authorization = str(request.headers.get("Authorization", ""))
        if authorization != self._authorization:
            self._authorization = authorization
            self.secrets = self._known_secrets({"authorization": authorization})
        return super().send(request, **kwargs)

    def _known_secrets(self, sent: Mapping[str, str]) -> Secrets:
        return Secrets({**self._given_headers, **sent}, (self._endpoint, *proxy_urls()))

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        headers = {name.lower(): value for name, value in {**self.headers, **(kwargs.get("headers") or {})}.items()}
        kwargs["data"] = _pack(self.body, str(headers.get("content-encoding", "")))
        kwargs["stream"] = True
        kwargs["allow_redirects"] = False
        # Said for each request, because REQUESTS_CA_BUNDLE beats a session's value; an empty one would turn checks off.
        kwargs["verify"] = kwargs.get("verify") or self.verify or True
        try:
            with self._deadline, super().request(method, url, *args, **kwargs) as response:
                self.reply = self._read(response)
        except exceptions.RequestException as error:
            self.reply = self._from_error(error)
        except (urllib3.exceptions.HTTPError, TimeoutError, ConnectionError) as error:
            self.reply = NoReply(_cause(error) or type(error).__name__)
        except (OSError, ValueError) as error:  # a certificate file that is gone, a host name that cannot be written
            self.reply = NotSent(str(error))
        if self._deadline.was_cut:  # whatever came: the first half of an answer can look like a whole one
            self.reply = NoReply(f"no answer within {self._timeout_s:g} s")
        self._was_answered |= isinstance(self.reply, HttpReply)
        fine = requests.Response()
        fine.status_code = 200
        return fine

    def get_redirect_target(self, resp: requests.Response) -> None:
        """No target: else a session reads a redirect's whole body and its target, even when it does not follow."""

    def merge_environment_settings(self, *args: Any, **kwargs: Any) -> Any:
        settings = super().merge_environment_settings(*args, **kwargs)
        if self._is_direct:
            settings["proxies"] = {}
        return settings

    def _read(self, response: requests.Response) -> HttpReply:
        body = b""
        for chunk in response.iter_content(16 * 1024):
            body += chunk
            if len(body) >= MAX_REPLY_BYTES:
                break
        return HttpReply(
            status=response.status_code,
            content_type=response.headers.get("Content-Type", ""),
            body=body,
            retry_after=response.headers.get("Retry-After", ""),
            location=_target(response),
            received_unix_s=time.time(),
        )

    def _from_error(self, error: exceptions.RequestException) -> Reply:
        if isinstance(error, exceptions.InvalidSchema) and "SOCKS" in str(error):
            return NotSent("a SOCKS proxy needs the package PySocks; install it, or name an http:// proxy")
        if isinstance(error, SETTING_ERRORS):
            return NotSent(str(error).replace(self._endpoint, without_user_info(self._endpoint)))
        if isinstance(error, exceptions.ConnectTimeout):
            return NoReply(f"no connection within {self._timeout_s:g} s")
        cause = _cause(error) or type(error).__name__
        if isinstance(error, exceptions.Timeout) or "timed out" in cause:
            return NoReply(f"no answer within {self._timeout_s:g} s")
        if isinstance(error, exceptions.ProxyError):
            return NoReply(f"the proxy: {cause}")
        return NoReply(cause if self._was_answered else cause + _hint(error, self._endpoint))


def _target(response: requests.Response) -> str:
    """Where a redirect points to, as far as it may be shown."""
    location = response.headers.get("Location", "")
    try:
        whole = urljoin(response.url, location)
        return without_user_info(whole.partition("?")[0].partition("#")[0]) if location else ""
    except ValueError:  # no URL
        return ""


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _pack(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body, compresslevel=6, mtime=0)
    if encoding == "deflate":
        return zlib.compress(body)
    return body


def _cause(error: BaseException) -> str:
    """The reason at the root of a network error, in plain words: the texts on top of it name objects and addresses."""
    for inner in _chain(error):
        match inner:
            case ssl.SSLCertVerificationError():
                return (
                    f"TLS: the certificate is not trusted ({inner.verify_message});"
                    " OTEL_EXPORTER_OTLP_CERTIFICATE can name the authority that signed it"
                )
            case ssl.SSLError() if inner.reason in _NO_TLS:
                return "the answer is not TLS (a plain HTTP port wants http://, not https://)"
            case ssl.SSLError():
                return f"TLS: {(inner.reason or 'handshake failed').replace('_', ' ').lower()}"
            case socket.gaierror():
                return f"the host name cannot be found ({inner.strerror})"
            case RemoteDisconnected():
                return "the connection was closed without an answer"
            case BadStatusLine():
                return "the answer is not HTTP (a gRPC port wants --protocol grpc)"
            case IncompleteRead() | urllib3.exceptions.IncompleteRead():
                return "the connection was closed in the middle of the answer"
            case HTTPException():
                return f"the answer cannot be read ({inner})"
            case urllib3.exceptions.DecodeError():
                return "the answer cannot be unpacked"
            case TimeoutError():
                return "timed out"
            case OSError() if inner.errno and inner.strerror:
                return inner.strerror.lower()
    return ""


def _hint(error: BaseException, endpoint: str) -> str:
    """What a port may speak that hung up: a server of gRPC or TLS does that to a request that is no such thing."""
    if endpoint.startswith("https:"):
        hung_up = any(isinstance(one, RemoteDisconnected) for one in _chain(error))  # TLS was agreed on
        return " (a gRPC port wants --protocol grpc)" if hung_up else ""
    hung_up = any(isinstance(one, ConnectionResetError | BrokenPipeError) for one in _chain(error))
    return " (a TLS port wants https://, a gRPC port wants --protocol grpc)" if hung_up else ""


def _chain(error: BaseException) -> list[BaseException]:
    """The error and everything that it was made from."""
    met: list[BaseException] = [error]
    for outer in met:
        inner = [outer.__cause__, outer.__context__, getattr(outer, "reason", None), *outer.args]
        met += [one for one in inner if isinstance(one, BaseException) and not any(one is other for other in met)]
    return met
