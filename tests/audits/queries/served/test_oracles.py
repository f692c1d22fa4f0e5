"""Models behind an endpoint answer attacks as models in this process do; what goes wrong there is one line."""

from __future__ import annotations

import gzip
import logging
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.errors import BadInput, ServerSilent
from audits.models import make_model
from audits.queries.oracles import label_oracle, logit_oracle, posterior_oracle
from audits.queries.served import patience
from audits.queries.served.endpoint import Endpoint, mlflow_endpoint
from audits.queries.served.oracles import HttpLabels, HttpPosteriors, recorded_labels, recorded_posteriors
from audits.queries.served.patience import Pace
from audits.queries.served.reading import Reading
from tests.audits.apollo.evidence.scene import make_scene
from tests.cases.endpoint import Fault, Server, cut_short, hang_up, serving, status

SHAPE, CLASSES = (2, 8), 4  # rows of 64 bytes: where a slice begins in memory decides torch's last bits
LOGITS = Reading(CLASSES, "logits")
POINTS = np.arange(12)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.002)


def model() -> nn.Module:
    return make_model("mlp", {"hidden": [5]}).build(SHAPE, CLASSES, 0).eval()


def inputs(count: int = 12, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, *SHAPE, generator=torch.Generator().manual_seed(seed))


def labels_at(server: Server, pace: Pace = Pace(batch=5), **settings: Any) -> HttpLabels:  # noqa: B008  # frozen
    record = settings.pop("record", None)
    return HttpLabels(mlflow_endpoint(server.url, **settings), LOGITS, pace, record)


@pytest.mark.parametrize("batch", [5, 12])
def test_labels_posteriors_and_logits_equal_those_of_the_model_bit_for_bit(batch: int) -> None:
    net, x = model(), inputs()
    with serving(net) as server:
        endpoint, pace = mlflow_endpoint(server.url), Pace(batch)
        labels = HttpLabels(endpoint, LOGITS, pace).oracle().ask(x[:, None], POINTS)
        logits = HttpPosteriors(endpoint, LOGITS, pace).logit_oracle().ask(x, POINTS)
        posteriors = HttpPosteriors(endpoint, LOGITS, pace).oracle().ask(x, POINTS)
    wanted = logit_oracle(net, chunk=batch).ask(x, POINTS)
    assert same(labels, label_oracle(net, chunk=batch).ask(x[:, None], POINTS))
    assert same(logits, wanted)
    assert same(posteriors, wanted.log_softmax(1))
    if batch == 12:
        assert same(posteriors, posterior_oracle(net).ask(x, POINTS))
    assert [len(body["inputs"]) for _, _, body in server.seen] == 3 * ([5, 5, 2] if batch == 5 else [12])


def same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return found.dtype == wanted.dtype and torch.equal(found, wanted)


def test_an_attack_gathers_equal_evidence_from_served_targets_and_counts_what_was_served() -> None:
    scene = make_scene()
    one, two = scene.targets.values()
    with serving(lambda x: one(x.double())) as first, serving(lambda x: two(x.double())) as second:
        reading = Reading(4, "logits")
        served = [HttpLabels(mlflow_endpoint(server.url), reading) for server in (first, second)]
        oracles = {index: each.oracle() for index, each in zip(scene.targets, served, strict=True)}
        rounded = {index: label_oracle(Rounded(net)) for index, net in scene.targets.items()}
        found = scene.gather("apollo", labels=oracles).arrays()
    wanted = scene.gather("apollo", labels=rounded).arrays()
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    ids = np.unique(scene.questions.ids)
    for index, each, server in zip(scene.targets, served, (first, second), strict=True):
        counted = int(oracles[index].counter.queries_spent(ids).sum())
        assert counted == each.tally.asked == each.tally.served == server.served > 0


class Rounded(nn.Module):
    """A model that sees its inputs as the endpoint does, in float32."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.net(x.float().double())
        return found


def test_a_record_answers_again_without_a_request_and_without_a_server(tmp_path: Path) -> None:
    net, x = model(), inputs()
    twice = torch.cat([x, x])
    with serving(net) as server:
        endpoint = mlflow_endpoint(server.url)
        labels = HttpLabels(endpoint, LOGITS, Pace(batch=5), tmp_path)
        oracle = labels.oracle(budget=2)
        found = oracle.ask(twice[:, None], np.tile(POINTS, 2))
        assert (labels.tally.asked, labels.tally.served, labels.tally.requests) == (24, 12, 3)
        assert server.served == 12
        assert oracle.counter.queries_spent(POINTS).tolist() == 12 * [2]
        with pytest.raises(BadInput, match="budget of 2"):
            oracle.ask(x[:1, None], POINTS[:1])
        again = HttpPosteriors(endpoint, LOGITS, record=tmp_path)
        posteriors = again.oracle().ask(x, POINTS)
        assert (again.tally.asked, again.tally.served, again.tally.requests) == (12, 0, 0)
    assert torch.equal(recorded_labels(tmp_path).ask(twice[:, None], np.tile(POINTS, 2)), found)
    assert torch.equal(recorded_posteriors(tmp_path).ask(x, POINTS), posteriors)
    assert same(posteriors, logit_oracle(net, chunk=5).ask(x, POINTS).log_softmax(1))
    with pytest.raises(BadInput, match="lacks 1 of 2 inputs, first that in row 1 "):
        recorded_labels(tmp_path).ask(torch.cat([x[:1], inputs(1, seed=9)])[:, None], POINTS[:2])
    with pytest.raises(BadInput, match="lacks 1 of 1 inputs"):  # the same bytes in another shape
        recorded_labels(tmp_path).ask(x[:1, None].flatten(2), POINTS[:1])


def test_an_interrupted_audit_asks_nothing_twice(tmp_path: Path) -> None:
    net, x = model(), inputs()
    whole = logit_oracle(net, chunk=5).ask(x, POINTS).log_softmax(1)
    with serving(net, faults=[None, None, status(404)]) as server:
        endpoint = mlflow_endpoint(server.url)
        with pytest.raises(BadInput, match="404"):
            HttpPosteriors(endpoint, LOGITS, Pace(batch=5), tmp_path).oracle().ask(x, POINTS)
        assert server.served == 10
        second = HttpPosteriors(endpoint, LOGITS, Pace(batch=5), tmp_path)
        assert torch.equal(second.oracle().ask(x, POINTS), whole)
        assert second.tally.served == 2 and server.served == 12


def test_a_server_that_is_killed_and_started_again_is_waited_for() -> None:
    net, x = model(), inputs()
    with serving(net, faults=[None, hang_up]) as first:
        gone = threading.Event()
        fault = first.faults

        def then_die() -> Any:
            yield from fault
            gone.set()
            yield hang_up

        first.faults = then_die()
        labels = labels_at(first)
        found: list[torch.Tensor] = []
        thread = threading.Thread(target=lambda: found.append(labels.oracle().ask(x[:, None], POINTS)))
        thread.start()
        assert gone.wait(600)
    with serving(net, port=first.server_port) as second:
        thread.join(600)
    assert torch.equal(found[0], label_oracle(net).ask(x[:, None], POINTS))
    assert first.served + second.served == labels.tally.served == 12


@pytest.mark.parametrize(
    "fault",
    [
        status(429, Retry_After="0"),
        status(500),
        status(502),
        status(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        status(504, Retry_After="nonsense"),
        hang_up,
        cut_short,
        status(307, Location="/elsewhere"),
    ],
)
def test_a_fault_that_passes_costs_a_request_and_no_answer(fault: Fault) -> None:
    net, x = model(), inputs()
    with serving(net, faults=[None, fault]) as server:
        labels = labels_at(server)
        assert torch.equal(labels.oracle().ask(x[:, None], POINTS), label_oracle(net).ask(x[:, None], POINTS))
    assert labels.tally.served == server.served == 12
    assert len(server.seen) == 4


def test_a_connection_that_the_server_closed_between_requests_is_opened_again_at_once() -> None:
    with serving(model(), faults=[None, hang_up, None, hang_up]) as server:
        labels = labels_at(server, Pace(batch=5, patience=0))
        assert len(labels.answers(inputs())) == labels.tally.served == 12


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (status(500, {"error": "out of memory"}), r"did not answer for \d+ s: HTTP 500 .*out of memory"),
        (status(429, Retry_After="3600"), r"asks to wait 3600 s more: HTTP 429"),
        (hang_up, r"did not answer for \d+ s: RemoteDisconnected"),
    ],
)
def test_a_fault_that_stays_ends_in_one_line(fault: Fault, says: str) -> None:
    with serving(model(), faults=20 * [fault]) as server, pytest.raises(ServerSilent, match=says) as caught:
        labels_at(server, Pace(patience=0.01)).answers(inputs(1))
    assert "\n" not in str(caught.value)


def drips(first: bytes, drop: bytes) -> Fault:
    """Return a fault that answers ``first`` and then ``drop`` again and again."""

    def fault(handler: Any) -> None:
        handler.close_connection = True
        handler.wfile.write(first)
        with suppress(OSError):
            for _ in range(500):
                time.sleep(0.02)
                handler.wfile.write(drop)

    return fault


@pytest.mark.parametrize(
    "fault",
    [
        drips(b"", b""),
        drips(b"", b"H"),
        drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        drips(b"HTTP/1.1 100 Continue\r\n", b"x: y\r\n"),
        drips(b"HTTP/1.1 200 OK\r\nx: ", b"y"),
        drips(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" "),
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
    ],
    ids=["nothing", "status", "continue", "after-continue", "header", "length", "chunks", "chunk-line", "trailers"],
)
def test_one_deadline_holds_for_a_whole_reply(fault: Fault) -> None:
    with serving(model(), faults=[fault]) as server:
        labels = labels_at(server, Pace(patience=0), timeout=0.3)
        begun = time.monotonic()
        with pytest.raises(ServerSilent, match=r"no reply within 0\.3 s"):
            labels.answers(inputs(1))
        assert time.monotonic() - begun < 5  # the drops come for ten seconds
        assert len(labels.answers(inputs(1))) == 1


def test_the_deadline_holds_while_tls_is_spoken() -> None:
    def talk() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            for drop in b"\x16\x03\x03\x40\x00" + 500 * b"\x02":  # a handshake that goes on
                connection.sendall(bytes([drop]))
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        labels = HttpLabels(Endpoint(url, timeout=0.3), LOGITS, Pace(patience=0))
        begun = time.monotonic()
        with pytest.raises(ServerSilent, match=r"no reply within 0\.3 s"):
            labels.answers(inputs(1))
        assert time.monotonic() - begun < 5
        thread.join()


def test_a_reply_that_is_packed_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * 10**7)
    with (
        serving(model(), faults=[status(200, packed, Content_Encoding="gzip")]) as server,
        pytest.raises(BadInput, match="answered in the encoding 'gzip', which was not asked for"),
    ):
        labels_at(server).answers(inputs(1))


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (status(400, "a\nschema  is wrong"), r"HTTP 400 \(\"a\\nschema is wrong\"\)"),
        (status(401), "HTTP 401: it wants a token; see token_env"),
        (status(403), "HTTP 403: it wants a token"),
        (status(404), "HTTP 404: nothing is served at this path"),
        (status(413), "HTTP 413: 5 inputs are too much for a request; lower batch"),
        (status(422, "x" * 1000), r"HTTP 422 \(\"x{119}…\)"),
        (status(301, Location="/there"), "HTTP 301, a redirect that would lose"),
        (status(307, Location="http://elsewhere:1/there"), "to 'http://elsewhere:1/there', another server"),
        (status(308, Location="https://127.0.0.1/there"), "another server"),
        (status(200, b"<html>login</html>"), "answered no JSON but b'<html>login"),
        (status(200, b"[" * 100_000), "no JSON"),
        (status(200, {"outputs": []}), "answered no 'predictions' at \\$; there is 'outputs'"),
        (status(200, {"predictions": 3}), "a number at \\$.predictions, not a list of answers"),
        (status(200, {"predictions": [[1, 2, 3, 4]]}), "1 answers to 5 inputs"),
        (status(200, {"predictions": 5 * [[1, 2, 3]]}), "3 scores for an input; there are 4 classes"),
        (status(200, {"predictions": 5 * [[1, 2, 3, float("nan")]]}), "NaN or infinity for input 0"),
        (status(200, {"predictions": 5 * [[1, 2, 3, None]]}), "null, None, as a score"),
        (status(200, {"predictions": 5 * [[1, 2, 3, "4"]]}), "a text, '4', as a score"),
        (status(200, {"predictions": 5 * [{"0": 1, "1": 2, "2": 3, "cat": 4}]}), "a score for 'cat'; classes are"),
        (status(200, {"predictions": 5 * [2]}), "a number, 2, for an input, not a list of 4 scores"),
        (status(200, b" " * 2000), "more than 1000 bytes; lower batch"),
    ],
)
def test_what_will_not_pass_is_refused_at_once_in_one_line(fault: Fault, says: str, tmp_path: Path) -> None:
    with serving(model(), faults=[fault]) as server:
        labels = labels_at(server, record=tmp_path, largest=1000 if "1000 bytes" in says else 10**6)
        with pytest.raises(BadInput, match=says) as caught:
            labels.answers(inputs(5))
        assert "\n" not in str(caught.value)
        assert len(server.seen) == 1
        assert labels.tally.served == 0
        assert not list(tmp_path.rglob("*.parquet"))
        assert len(labels.answers(inputs(5))) == 5  # the next attempt finds a clean connection


def test_an_endpoint_of_one_input_a_request_is_asked_one_by_one(tmp_path: Path) -> None:
    net, x = model(), inputs()
    with serving(net) as server:
        endpoint = Endpoint(server.url, {"inputs": ["{input}"]}, "$.predictions[0]")
        for record in (None, tmp_path):
            labels = HttpLabels(endpoint, LOGITS, record=record)
            assert torch.equal(labels.oracle().ask(x[:, None], POINTS), label_oracle(net).ask(x[:, None], POINTS))
            assert labels.tally.requests == labels.tally.served == 12


def test_nobody_at_the_address_is_waited_for_and_an_unknown_host_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nobody = HttpLabels(Endpoint(f"http://127.0.0.1:{port}"), LOGITS, Pace(patience=0.01))
    with pytest.raises(ServerSilent, match="Connection refused"):
        nobody.answers(inputs(1))
    with pytest.raises(BadInput, match=r"the host of .* is not known"):
        HttpLabels(Endpoint("https://no-such-host.invalid"), LOGITS).answers(inputs(1))


def test_a_token_goes_to_the_server_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    token = "marked-9f3c"
    monkeypatch.setenv("MY_SERVICE", token)
    caplog.set_level(logging.DEBUG)
    echo: Fault = lambda handler: handler.reply(401, f"bad {handler.headers['Authorization']}")  # noqa: E731
    with serving(model(), faults=[None, echo]) as server:
        labels = labels_at(server, token_env="MY_SERVICE", record=tmp_path)
        labels.answers(inputs(5))
        assert server.seen[0][1]["Authorization"] == f"Bearer {token}"
        with pytest.raises(BadInput, match=r"the token in MY_SERVICE is not accepted .*bad Bearer \*\*\*") as caught:
            labels.answers(inputs(5, seed=1))
        monkeypatch.setenv("MY_SERVICE", "two\nlines")
        with pytest.raises(BadInput, match=r"MY_SERVICE, the token of .* holds characters"):
            labels.answers(inputs(5, seed=1))
        monkeypatch.delenv("MY_SERVICE")
        with pytest.raises(BadInput, match=r"MY_SERVICE, the token of .* is not set"):
            labels.answers(inputs(5, seed=1))
    kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(kept) == 2
    assert all(token.encode() not in text for text in [*kept, str(caught.value).encode(), caplog.text.encode()])
    assert token not in repr(labels.endpoint)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_redirect_takes_neither_token_nor_inputs_to_another_server(
    code: int, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVICE", "marked-9f3c")
    with serving(model()) as other:
        there = other.url.replace("127.0.0.1", host)
        with serving(model(), faults=[status(code, Location=there)]) as server:
            with pytest.raises(BadInput, match=f"HTTP {code}"):
                labels_at(server, token_env="MY_SERVICE").answers(inputs(5))
            assert len(server.seen) == 1
        assert not other.seen and not other.sockets


@pytest.mark.needs("openssl")
def test_a_certificate_is_checked_and_an_own_one_can_be_given(tmp_path: Path) -> None:
    pair = [str(tmp_path / name) for name in ("key.pem", "certificate.pem")]
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    made = [*words.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", pair[0], "-out", pair[1]]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair[1], pair[0])
    net, x = model(), inputs()
    with serving(net, certificate=context) as server:
        with pytest.raises(BadInput, match="is not trusted: self-signed certificate; give ca_file"):
            labels_at(server).answers(x)
        found = labels_at(server, ca_file=pair[1]).oracle().ask(x[:, None], POINTS)
        assert torch.equal(found, label_oracle(net).ask(x[:, None], POINTS))
        with pytest.raises(BadInput, match=r"ca_file .* cannot be read"):
            labels_at(server, ca_file=os.devnull + "/none")
        elsewhere = Endpoint(server.url.replace("localhost", "127.0.0.1"), ca_file=pair[1])
        seen = len(server.seen)
        with pytest.raises(BadInput, match="is not trusted: IP address mismatch"):
            HttpLabels(elsewhere, LOGITS).answers(x)
        assert len(server.seen) == seen
    with serving(net) as server, pytest.raises(BadInput, match="does not speak TLS as expected"):
        HttpLabels(Endpoint(server.url.replace("http", "https")), LOGITS).answers(x)


@pytest.mark.parametrize(
    ("reading", "shown", "rounding"),
    [
        (Reading(CLASSES, "probabilities"), lambda out: out.softmax(1).tolist(), 1e-6),
        (Reading(CLASSES, "log_probabilities"), lambda out: out.log_softmax(1).tolist(), 1e-6),
        (
            Reading(CLASSES, "probabilities", decimals=3),
            lambda out: [[round(value, 3) for value in row] for row in out.softmax(1).tolist()],
            2e-2,
        ),
        (
            Reading(CLASSES, "logits", class_names=["a", "b", "c", "d"]),
            lambda out: [dict(zip("dcba", reversed(row), strict=True)) for row in out.tolist()],
            1e-6,
        ),
        (Reading(CLASSES, "logits"), lambda out: [dict(zip("0123", row, strict=True)) for row in out.tolist()], 1e-6),
    ],
    ids=["probabilities", "log-probabilities", "rounded", "by name", "by index"],
)
def test_every_kind_of_scores_is_read(reading: Reading, shown: Callable[[Any], Any], rounding: float) -> None:
    net, x = model(), inputs()
    with serving(net, shown) as server:
        found = HttpPosteriors(mlflow_endpoint(server.url), reading).oracle().ask(x, POINTS)
        labels = HttpLabels(mlflow_endpoint(server.url), reading).oracle().ask(x[:, None], POINTS)
    assert found.dtype == torch.float64
    assert torch.allclose(found, posterior_oracle(net).ask(x, POINTS), rtol=0, atol=rounding)
    assert torch.equal(labels, label_oracle(net).ask(x[:, None], POINTS))
