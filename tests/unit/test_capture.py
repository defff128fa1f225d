"""What a capture is told and how it fails, without a cluster."""

from __future__ import annotations

import builtins
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from understudy import cli
from understudy.errors import BadInputError
from understudy.sources.live import security
from understudy.sources.live.properties import Properties, parse

SECRET = "hush-hush"  # noqa: S105 - nobody's
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def properties(tmp_path: Path, *lines: str) -> Properties:
    path = tmp_path / "client.properties"
    path.write_text("\n".join(lines), encoding="utf-8")
    return Properties.of_file(str(path))


# --- Properties --------------------------------------------------------------------------------


def test_properties_are_read_as_java_reads_them() -> None:
    text = "\n".join(
        [
            "# a comment",
            "  ! another",
            "",
            "plain=value with spaces ",
            "colon : value",
            "blank value",
            r"long = one,\ ".rstrip(),
            "       two",
            r"key\ with\=marks=\u00e4\t\\ \q",
            "empty=",
            "alone",
        ]
    )
    assert parse(text) == {
        "plain": (4, "value with spaces "),
        "colon": (5, "value"),
        "blank": (6, "value"),
        "long": (7, "one,two"),
        "key with=marks": (9, "ä\t\\ q"),
        "empty": (10, ""),
        "alone": (11, ""),
    }


def test_without_a_file_a_connection_is_plain() -> None:
    assert security.of_kafka(Properties.of_file(None)) == {"security_protocol": "PLAINTEXT"}
    assert security.of_zookeeper(Properties.of_file(None)) == security.ZooKeeperAccess(None, None)


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_a_login_is_taken_from_the_jaas_line(tmp_path: Path, mechanism: str, module: str) -> None:
    found = security.of_kafka(
        properties(
            tmp_path,
            "security.protocol=SASL_PLAINTEXT",
            f"sasl.mechanism={mechanism}",
            f"sasl.jaas.config={module} required \\",
            r'  username="alice" password="a\\"b=;\\\\c";',
        )
    )
    assert found["sasl_mechanism"] == mechanism
    assert found["sasl_plain_username"] == "alice"
    assert found["sasl_plain_password"] == 'a"b=;\\c'  # noqa: S105 - nobody's


SASL = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("security.protocol=TLS",), "line 1: security.protocol: expected one of PLAINTEXT"),
        ((SASL[0], "sasl.mechanism=GSSAPI"), "line 2: sasl.mechanism: expected one of PLAIN"),
        ((SASL[0],), "sasl.mechanism: expected one of PLAIN"),
        (SASL, "sasl.jaas.config: expected org.apache.kafka"),
        ((*SASL, f"sasl.jaas.config={SECRET}"), "line 3: sasl.jaas.config: expected"),
        (
            (
                *SASL,
                f'sasl.jaas.config={PLAIN} required username="a" password="{SECRET}" x="{SECRET}";',
            ),
            "line 3: sasl.jaas.config: expected the options username and password, and no others",
        ),
        (
            (*SASL, f'sasl.jaas.config={PLAIN} required username="a" {SECRET};'),
            "line 3: sasl.jaas.config: what follows the login module",
        ),
        (
            (*SASL, f'sasl.jaas.config={SCRAM} required username="a" password="{SECRET}";'),
            "sasl.jaas.config: expected org.apache.kafka.common.security.plain",
        ),
        ((f"ssl.truststore.password={SECRET}",), "- line 1: ssl.truststore.password"),
        (("client.id=me", f"sasl.login.class={SECRET}", "retries=3"), "- line 3: retries"),
        (
            ("security.protocol=SSL", "ssl.truststore.location=/store.jks"),
            "ssl.truststore.type: Python reads PEM files alone",
        ),
        (
            ("security.protocol=SSL", "ssl.keystore.location=x", "ssl.keystore.type=PKCS12"),
            "line 3: ssl.keystore.type: Python reads PEM files alone",
        ),
        (
            (
                "security.protocol=SSL",
                "ssl.truststore.location=/no/such",
                "ssl.truststore.type=PEM",
            ),
            "line 2: ssl.truststore.location: No such file",
        ),
        (
            ("security.protocol=SSL", f"ssl.keystore.key={SECRET}", "ssl.keystore.type=PEM"),
            "line 2: ssl.keystore.key: ",
        ),
        (
            ("security.protocol=SSL", "ssl.enabled.protocols=TLSv1.1"),
            "line 2: ssl.enabled.protocols: expected some of TLSv1.2, TLSv1.3",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name_and_without_its_value(
    tmp_path: Path, lines: tuple[str, ...], told: str
) -> None:
    with pytest.raises(BadInputError) as refused:
        security.of_kafka(properties(tmp_path, *lines))
    assert told in str(refused.value)
    assert SECRET not in str(refused.value)


def test_only_a_given_store_is_trusted_and_names_are_checked(tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    lines = ["security.protocol=SSL", "ssl.truststore.type=pem", f"ssl.truststore.location={pem}"]
    context = security.of_kafka(properties(tmp_path, *lines))["ssl_context"]
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    lines += ["ssl.endpoint.identification.algorithm=", "ssl.enabled.protocols=TLSv1.3"]
    context = security.of_kafka(properties(tmp_path, *lines))["ssl_context"]
    assert not context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


def test_a_key_in_the_file_itself_is_loaded_and_left_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "left"))
    (tmp_path / "left").mkdir()
    pem = certificate(tmp_path).read_text(encoding="ascii")
    cut = pem.index("-----BEGIN CERTIFICATE")
    inline = [text.replace("\n", "\\n") for text in (pem[:cut], pem[cut:])]
    security.of_kafka(
        properties(
            tmp_path,
            "security.protocol=SSL",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.key={inline[0]}",
            f"ssl.keystore.certificate.chain={inline[1]}",
        )
    )
    assert list((tmp_path / "left").iterdir()) == []


def certificate(home: Path) -> Path:
    path = home / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"]
    done = subprocess.run([*command, "-keyout", "-", "-out", "-"], check=True, capture_output=True)
    path.write_bytes(done.stdout)
    return path


def test_zookeeper_is_told_by_keys_of_its_own(tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    found = security.of_zookeeper(
        properties(
            tmp_path,
            "zookeeper.ssl.client.enable=true",
            "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.truststore.type=PEM",
            f"zookeeper.ssl.truststore.location={pem}",
            f"zookeeper.digest=kafka:{SECRET}",
        )
    )
    assert found.context is not None
    assert len(found.context.get_ca_certs()) == 1
    assert found.digest == f"kafka:{SECRET}"
    with pytest.raises(BadInputError, match=r"line 1: security\.protocol"):
        security.of_zookeeper(properties(tmp_path, "security.protocol=SSL"))


# --- The command -------------------------------------------------------------------------------


@pytest.fixture
def dead_end() -> Iterator[str]:
    """An address where somebody listens, and never says a word."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def nobody() -> str:
    with closing(socket.socket()) as once:
        once.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{once.getsockname()[1]}"


def test_nobody_who_answers_is_one_sentence_in_time(
    dead_end: str, nobody: str, tmp_path: Path
) -> None:
    """Each in a process of its own: the clients leave threads and sockets behind when they fail."""
    asked = [
        (whom, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for whom, option, *more in (
            (dead_end, "--bootstrap", "--json"),
            (nobody, "--bootstrap"),
            (dead_end, "--zookeeper"),
            (nobody, "--zookeeper"),
        )
        for command in (capture(option, whom, tmp_path, *more),)
    ]
    for whom, process in asked:
        out, err = process.communicate(timeout=100)
        assert process.returncode == 65
        told = err.decode().removeprefix("understudy: ")
        if "--json" in process.args:  # type: ignore[operator]
            assert err == b""
            answer = json.loads(out)
            assert answer["exit_code"] == 65
            told = f"{answer['error']}\n"
        assert told.startswith(f"{whom}: no answer within 0.5 seconds")
        assert told.count("\n") == 1
    assert not (tmp_path / "store").exists()


def capture(option: str, whom: str, home: Path, *more: str) -> list[str]:
    command = [sys.executable, "-m", "understudy", "capture", option, whom, *more]
    return [*command, "--into", str(home / "store"), "--timeout", "0.5"]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "one of the arguments --bootstrap --zookeeper is required"),
        (["--bootstrap", "b:1", "--zookeeper", "z:1"], "not allowed with argument"),
        (["--bootstrap", "b"], "--bootstrap b: 'b' is no HOST:PORT"),
        (["--bootstrap", "b:1,c/x"], "'c/x' is no HOST:PORT"),
        (["--zookeeper", "z:1,y/kafka"], "'y' is no HOST:PORT"),
        (["--bootstrap", "b:1", "--timeout", "0"], "'0' is not a number of seconds"),
        (["--bootstrap", "b:1", "--release", "9"], "--release"),
    ],
)
def test_wrong_usage(argv: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capture", *argv, "--into", "store"]) == 64
    assert told in capsys.readouterr().err


def test_without_its_clients_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - as it is
        if name == "kafka":
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert cli.main(["capture", "--bootstrap", "b:1", "--into", "store"]) == 64
    told = "understudy: a capture needs kafka-python and kazoo: pip install 'understudy[capture]'\n"
    assert capsys.readouterr().err == told


def test_a_file_of_settings_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    said = ["--bootstrap", "b:1", "--into", "store", "--command-config", "/no/such/file"]
    assert cli.main(["capture", *said]) == 65
    assert capsys.readouterr().err == "understudy: /no/such/file: No such file or directory\n"
