"""How to get in: TLS and SASL as Kafka's and ZooKeeper's own properties say it.

Python reads PEM files. A key store of another type, and whatever else cannot be honoured, is
refused by the name of its key.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from understudy.sources.live.properties import Properties

PEM: Final = "PEM"
_STORE_TYPES: Final = ("JKS", "PKCS12", PEM)
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TLS_VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_JAAS: Final = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?P<flag>\w+)(?P<options>.*?)\s*;\s*", re.DOTALL
)
_JAAS_OPTION: Final = re.compile(
    r"""\s+(?P<key>[\w.]+)\s*=\s*(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<plain>[^\s";]+))""",
    re.DOTALL,
)
_NO_PEM: Final = (
    "Python reads PEM files alone: convert the store (keytool and openssl do) and say {key}=PEM"
)


# --- Kafka -------------------------------------------------------------------------------------


def of_kafka(properties: Properties) -> dict[str, Any]:
    """The settings of kafka-python's client that *properties* ask for."""
    protocol = properties.choose("security.protocol", _PROTOCOLS, "PLAINTEXT")
    found: dict[str, Any] = {"security_protocol": protocol}
    if protocol.endswith("SSL"):
        found["ssl_context"] = _context(properties, "", default_check=True)
    if protocol.startswith("SASL"):
        found |= _sasl(properties)
    client_id = properties.take("client.id")
    if client_id:
        found["client_id"] = client_id
    properties.check_all_taken()
    return found


def _sasl(properties: Properties) -> dict[str, Any]:
    mechanism = properties.take("sasl.mechanism", "GSSAPI") or ""
    if mechanism not in _LOGIN_MODULES:
        raise properties.refusal("sasl.mechanism", f"expected one of {', '.join(_LOGIN_MODULES)}")
    options = _jaas(properties, _LOGIN_MODULES[mechanism])
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": options["username"],
        "sasl_plain_password": options["password"],
    }


def _jaas(properties: Properties, module: str) -> dict[str, str]:
    key = "sasl.jaas.config"
    said = properties.take(key)
    whole = _JAAS.fullmatch(said or "")
    if whole is None or whole["module"] != module:
        raise properties.refusal(key, f'expected {module} required username="…" password="…";')
    options = {}
    at = 0
    for option in _JAAS_OPTION.finditer(whole["options"]):
        if option.start() != at:
            break
        at = option.end()
        quoted = option["quoted"]
        options[option["key"]] = (
            option["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        )
    if whole["options"][at:].strip():
        raise properties.refusal(key, 'what follows the login module is no list of key="value"')
    if set(options) != {"username", "password"}:
        raise properties.refusal(key, "expected the options username and password, and no others")
    return options


def _context(properties: Properties, prefix: str, *, default_check: bool) -> ssl.SSLContext:
    """The TLS settings below *prefix*: whom to trust, and who we are."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit_versions(context, properties, prefix)
    algorithm = f"{prefix}ssl.endpoint.identification.algorithm"
    said = properties.take(algorithm, "HTTPS" if default_check else "")
    if (said or "").upper() not in ("", "HTTPS"):
        raise properties.refusal(algorithm, "expected https, or nothing for no check of names")
    context.check_hostname = bool(said)
    _trust(context, properties, prefix)
    _identify(context, properties, prefix)
    return context


def _limit_versions(context: ssl.SSLContext, properties: Properties, prefix: str) -> None:
    key = f"{prefix}ssl.protocol"
    only = properties.take(key)
    enabled = properties.take(f"{prefix}ssl.enabled.protocols")
    if enabled is not None:
        key = f"{prefix}ssl.enabled.protocols"
    names = [name.strip() for name in (enabled or only or "").split(",") if name.strip()]
    if any(name not in (*_TLS_VERSIONS, "TLS") for name in names):
        raise properties.refusal(key, f"expected some of {', '.join(_TLS_VERSIONS)}")
    versions = [_TLS_VERSIONS[name] for name in names if name in _TLS_VERSIONS]
    # Kafka's ssl.protocol is the newest version, not the only one.
    if versions:
        context.minimum_version = min(versions) if enabled else ssl.TLSVersion.TLSv1_2
        context.maximum_version = max(versions)


def _trust(context: ssl.SSLContext, properties: Properties, prefix: str) -> None:
    location = properties.take(f"{prefix}ssl.truststore.location")
    inline = properties.take(f"{prefix}ssl.truststore.certificates")
    type_key = f"{prefix}ssl.truststore.type"
    store_type = properties.choose(type_key, _STORE_TYPES, "JKS")
    if properties.take(f"{prefix}ssl.truststore.password") is not None and store_type == PEM:
        raise properties.refusal(f"{prefix}ssl.truststore.password", "a PEM file has none")
    if location is None and inline is None:
        context.load_default_certs()
        return
    if store_type != PEM:
        raise properties.refusal(type_key, _NO_PEM.format(key=type_key))
    try:
        if location is not None:
            context.load_verify_locations(cafile=location)
        else:
            context.load_verify_locations(cadata=inline)
    except (OSError, ValueError) as error:
        key = "location" if location is not None else "certificates"
        raise properties.refusal(f"{prefix}ssl.truststore.{key}", _reason(error)) from None


def _identify(context: ssl.SSLContext, properties: Properties, prefix: str) -> None:
    location = properties.take(f"{prefix}ssl.keystore.location")
    chain = properties.take(f"{prefix}ssl.keystore.certificate.chain")
    key = properties.take(f"{prefix}ssl.keystore.key")
    password = properties.take(f"{prefix}ssl.key.password")
    type_key = f"{prefix}ssl.keystore.type"
    store_type = properties.choose(type_key, _STORE_TYPES, "JKS")
    if properties.take(f"{prefix}ssl.keystore.password") is not None and store_type == PEM:
        raise properties.refusal(
            f"{prefix}ssl.keystore.password", "a PEM file has none (ssl.key.password is the key's)"
        )
    if location is None and chain is None and key is None:
        return
    if store_type != PEM:
        raise properties.refusal(type_key, _NO_PEM.format(key=type_key))
    where = f"{prefix}ssl.keystore." + ("location" if location is not None else "key")
    try:
        if location is not None:
            context.load_cert_chain(location, password=password or "")
        else:
            with _file_of(f"{key or ''}\n{chain or ''}\n") as path:
                context.load_cert_chain(path, password=password or "")
    except (OSError, ValueError) as error:
        raise properties.refusal(where, _reason(error)) from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "this is no PEM"


@contextmanager
def _file_of(secret: str) -> Iterator[str]:
    """A file for nobody else's eyes, as Python loads keys from files alone."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="ascii", errors="replace") as file:
            file.write(secret)
        yield path
    finally:
        os.unlink(path)  # noqa: PTH108 - made by tempfile, which gives a name


# --- ZooKeeper ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ZooKeeperAccess:
    """How kazoo gets in."""

    context: ssl.SSLContext | None
    digest: str | None
    """``user:password`` for ZooKeeper's digest scheme (``addauth digest``)."""


def of_zookeeper(properties: Properties) -> ZooKeeperAccess:
    """What *properties* say of ZooKeeper: keys as in Kafka's ``--zk-tls-config-file``."""
    enabled = properties.choose("zookeeper.ssl.client.enable", ("TRUE", "FALSE"), "FALSE")
    properties.take("zookeeper.clientCnxnSocket")  # Java's way to say that TLS is possible
    context = None
    if enabled == "TRUE":
        context = _context(properties, "zookeeper.", default_check=True)
    digest = properties.take("zookeeper.digest")
    if digest is not None and ":" not in digest:
        raise properties.refusal("zookeeper.digest", "expected user:password")
    properties.check_all_taken()
    return ZooKeeperAccess(context, digest)
