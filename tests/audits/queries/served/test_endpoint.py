"""Requests are made by template, answers found by path and read strictly."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from audits.errors import BadInput
from audits.queries.served.endpoint import Endpoint, mlflow_endpoint
from audits.queries.served.json_path import Unreadable, look_up, parsed
from audits.queries.served.reading import SMALLEST, Reading
from tests.cases.families import as_one

URL = "https://host/predict"


def sent(endpoint: Endpoint, points: torch.Tensor) -> Any:
    return json.loads(endpoint.body(points))


def test_inputs_take_the_place_of_the_mark_with_all_their_digits() -> None:
    x = torch.randn(3, 2, 2, generator=torch.Generator().manual_seed(0))
    endpoint = Endpoint(URL, {"model": "net", "data": [{"batch": "{inputs}"}, 1]})
    document = sent(endpoint, x)
    assert document["model"] == "net" and document["data"][1] == 1
    assert torch.equal(torch.tensor(document["data"][0]["batch"], dtype=torch.float32), x)
    assert sent(Endpoint(URL), x) == x.tolist()
    assert sent(Endpoint(URL, encoding="flat"), x) == x.flatten(1).tolist()
    assert sent(Endpoint(URL, "{inputs}", item={"x": "{input}"}), x) == [{"x": point} for point in x.tolist()]
    assert sent(Endpoint(URL, {"x": "{input}"}), x[:1]) == {"x": x[0].tolist()}


@pytest.mark.parametrize("form", ["inputs", "instances"])
def test_the_forms_of_an_mlflow_server(form: Any) -> None:
    endpoint = mlflow_endpoint("http://127.0.0.1:5000", form)
    assert endpoint.url == "http://127.0.0.1:5000/invocations"
    assert sent(endpoint, torch.ones(2, 1, 2)) == {form: [[[1, 1]], [[1, 1]]]}


def test_a_frame_has_a_row_of_numbers_an_input() -> None:
    x = torch.ones(2, 1, 2)
    endpoint = mlflow_endpoint("https://host/serving/invocations", "dataframe_split")
    assert endpoint.url == "https://host/serving/invocations"
    assert sent(endpoint, x) == {"dataframe_split": {"data": [[1, 1], [1, 1]]}}
    named = mlflow_endpoint("https://host", "dataframe_split", columns=["a", "b"])
    assert sent(named, x) == {"dataframe_split": {"columns": ["a", "b"], "data": [[1, 1], [1, 1]]}}


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (3, 4, 5)])
def test_a_png_holds_the_image_in_256_levels(shape: tuple[int, ...]) -> None:
    levels = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0))
    endpoint = Endpoint(URL, "{inputs}", encoding="png", value_range=(-1, 1))
    between = torch.where(levels < 128, 0.001, -0.001)  # the nearest level counts
    (text,) = sent(endpoint, (levels / 255 * 2 - 1 + between)[None])
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))
    assert np.array_equal(image, levels.movedim(0, -1).squeeze(-1) if len(shape) == 3 else levels)


@as_one(
    "settings, says",
    [
        ({"url": "host:80/x"}, "'host:80/x' is no address"),
        ({"url": "ftp://host"}, "no address"),
        ({"url": "http://"}, "no address"),
        ({"url": "http://host:99999"}, "no address"),
        ({"url": "https://host/a b"}, "no address"),
        ({"url": "https://me:hidden-9@host/x"}, r"'https://\*\*\*@host/x' holds credentials; put the token into"),
        ({"url": "https://host/x?key=***"}, "credentials are kept in no file"),
        ({"url": "http://host/x"}, "http://host/x would send inputs unencrypted"),
        ({"template": {"a": 1}}, "'{inputs}' or '{input}' as a value once"),
        ({"template": ["{inputs}", "{inputs}"]}, "once"),
        ({"item": {}}, "an item '{input}' once"),
        ({"encoding": "jpeg"}, "encoding is 'jpeg'; it is lists, flat or png"),
        ({"encoding": "png"}, "png needs value_range"),
        ({"answers": "predictions"}, "'predictions' is no path to answers"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        Endpoint(**{"url": URL, **settings})
    assert "hidden-9" not in str(caught.value)


def test_a_secret_in_an_address_is_asked_with_and_shown_nowhere() -> None:
    endpoint = Endpoint("https://host/x?sig=hidden-9&v=1")
    assert endpoint.address().query == "sig=hidden-9&v=1"
    assert "hidden-9" not in f"{endpoint} {endpoint.described}"
    assert Endpoint(endpoint.url).address() == endpoint.address()
    assert Endpoint("http://host", plain=True).described["served"] == "http://host"
    assert Endpoint("http://[::1]:80", identity="model 3").described["served"] == "model 3"


def test_inputs_that_cannot_be_sent_are_refused() -> None:
    with pytest.raises(BadInput, match="inputs hold NaN"):
        Endpoint(URL).body(torch.tensor([[float("nan")]]))
    endpoint = Endpoint(URL, encoding="png", value_range=(0, 1))
    for image, says in ((torch.full((1, 2, 2), 1.5), "outside value_range 0…1"), (torch.zeros(1, 4), "no image")):
        with pytest.raises(BadInput, match=says):
            endpoint.body(image)


@as_one(
    "path, wanted",
    [
        ("$", {"a": [{"b": 1, "c d": [5, 6]}, {"b": 2, "c d": [7, 8]}]}),
        ("$.a[*].b", [1, 2]),
        ("$['a'][*]['c d'][0]", [5, 7]),
        ('$.a[-1]["c d"]', [7, 8]),
        ("$.a[*]['c d'][*]", [[5, 6], [7, 8]]),
    ],
)
def test_a_path_leads_to_answers(path: str, wanted: Any) -> None:
    document = {"a": [{"b": 1, "c d": [5, 6]}, {"b": 2, "c d": [7, 8]}]}
    assert look_up(document, parsed(path)) == wanted


@as_one(
    "path, says",
    [
        ("$.b", r"no 'b' at \$; there is 'a'"),
        ("$.a.b", r"a list at \$\.a, not an object with 'b'"),
        ("$[0]", r"an object at \$, not a list"),
        ("$.a[2]", r"a list of 1 at \$\.a, which has no item 2"),
        ("$.a[*][*]", r"a number at \$\.a\[0\], not a list"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        look_up({"a": [1]}, parsed(path))


@as_one("path", ["", "a", "$a", "$.", "$..a", "$[]", "$[a]", "$[1:2]", "$.a[?(@.b)]", "$.a "])
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(BadInput, match="is no path to answers; write"):
        parsed(path)


def test_labels_are_read_by_index_and_by_name() -> None:
    assert Reading(3).labels([0, 2.0, 1]).tolist() == [0, 2, 1]
    assert Reading(2, class_names=["cat", "dog"]).labels(["dog", "cat"]).tolist() == [1, 0]
    mapping = {"1": 0, "2": 1, "two": 1}
    assert Reading(2, class_names=mapping).labels([2, "two", "1"]).tolist() == [1, 1, 0]
    assert Reading(3, "probabilities").labels([[0.2, 0.4, 0.4], [0.5, 0.2, 0.3]]).tolist() == [1, 0]
    assert Reading(3).labels([]).dtype == np.int64 and Reading(3, "logits").labels([]).shape == (0,)


@as_one(
    "reading, answer, says",
    [
        (Reading(3), 3, "the label 3; labels are 0…2"),
        (Reading(3), -1, "the label -1"),
        (Reading(3), 0.5, "a number, 0.5, which is no label"),
        (Reading(3), float("nan"), "nan, which is no label"),
        (Reading(3), True, "true or false, True, which is no label"),
        (Reading(3), [1], r"a list, \[1\], which is no label"),
        (Reading(3), None, "null, None"),
        (Reading(3), "cat", "the label 'cat', a name; give class_names"),
        (Reading(2, class_names=["cat", "dog"]), "cart", r"'cart', .*\(did you mean 'cat'\?\); it holds 'cat', 'dog'"),
        (Reading(2, class_names=["True", "dog"]), True, "the label True, which class_names does not hold"),
        (Reading(2, "probabilities"), [0.5, 0.6], "add up to 1.1 for input 0; if it rounds, give decimals"),
        (Reading(2, "probabilities"), [1.2, -0.2], "the probability -0.2; if these are logits"),
        (Reading(2, "probabilities"), [3, 4], "the probability 4; if these are logits"),
        (Reading(2, "probabilities", decimals=2), [0.345, 0.655], "0.345, not rounded to 2 decimals"),
        (Reading(2, "log_probabilities"), [0.5, -2], "the log-probability 0.5, above 0"),
        (Reading(2, "log_probabilities"), [-1, -1], "add up to 0.735759"),
        (Reading(2, "logits"), [1, float("inf")], "NaN or infinity for input 0"),
        (Reading(2, "logits"), [1, 10**400], "too large"),
        (Reading(2, "logits"), {"0": 1}, "1 scores for an input; there are 2 classes"),
    ],
)
def test_what_is_no_answer_is_refused(reading: Reading, answer: Any, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        reading.check([answer])


def test_a_probability_of_zero_is_taken_for_the_largest_that_is_shown_so() -> None:
    plain = Reading(2, "probabilities").log_probabilities([[0, 1]])
    assert plain.exp()[0].tolist() == pytest.approx([SMALLEST, 1], rel=1e-9)
    rounded = Reading(2, "probabilities", decimals=3).log_probabilities([[0.0, 1.0], [0.333, 0.667]]).exp()
    assert rounded.flatten().tolist() == pytest.approx([0.0005, 1, 0.333, 0.667])
    float32 = [float(np.float32(value)) for value in (0.333, 0.667)]
    Reading(2, "probabilities", decimals=3).check([float32])


@as_one(
    "settings, says",
    [
        ({"classes": 1}, "classes is 1"),
        ({"gives": "logit"}, "gives is 'logit'.*did you mean 'logits'"),
        ({"class_names": ["a", "a"]}, "2 different names"),
        ({"class_names": "ab"}, "2 different names"),
        ({"class_names": {"a": 2}}, "maps 'a' to 2, not to 0…1"),
        ({"decimals": 3}, "decimals is 3 for labels"),
        ({"decimals": 0, "gives": "probabilities"}, "decimals is 0"),
    ],
)
def test_a_reading_that_fits_nothing_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Reading(**{"classes": 2, **settings})
