"""Tables as data sets: Parquet, and folders in the layout that Hugging Face's ``datasets`` writes."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from audits.data.bounded import table_within
from audits.data.catalogue import describe, load
from audits.data.tables import read_table
from audits.errors import BadInput
from tests.cases.families import as_one

PIXELS = np.random.default_rng(0).integers(0, 255, (9, 6, 5), dtype=np.uint8)
LABELS = np.arange(9) % 3
FEATURES = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog", "eel"], "_type": "ClassLabel"}}


def png(pixels, size=None):
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.resize(size) if size else image).save(file, "PNG")
    return file.getvalue()


def images(**columns):
    rows = [{"bytes": png(each), "path": None} for each in PIXELS]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"image": pa.array(rows, kind), "label": LABELS, **columns})


def noted(table):
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})


def saved(folder, table, parts=2, state=None):
    """Write a table as ``Dataset.save_to_disk`` does."""
    folder.mkdir()
    names = [f"data-{part:05d}-of-{parts:05d}.arrow" for part in range(parts)]
    rows = -(-len(table) // parts)
    for part, name in enumerate(names):
        with pa.ipc.new_stream(str(folder / name), table.schema) as sink:
            sink.write_table(table.slice(part * rows, rows))
    files = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0"}
    (folder / "state.json").write_text(json.dumps({**files, **(state or {})}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return folder


def test_a_folder_of_datasets_is_read_with_the_names_of_its_classes(tmp_path):
    data = load(f"table:{saved(tmp_path / 'set', noted(images()))}")
    np.testing.assert_array_equal(data.inputs, PIXELS[:, None])
    np.testing.assert_array_equal(data.labels, LABELS)
    assert (data.classes, data.value_range) == (("cat", "dog", "eel"), (0.0, 1.0))
    assert describe(f"table:{tmp_path / 'set'}").points == 9


def test_parquet_gives_the_same_set_alone_and_in_shards(tmp_path):
    table = noted(images())
    pq.write_table(table, tmp_path / "whole.parquet")
    (tmp_path / "shards").mkdir()
    for part in range(3):
        pq.write_table(table.slice(3 * part, 3), tmp_path / "shards" / f"{part}.parquet")
    saved(tmp_path / "set", table)
    found = [load(f"table:{tmp_path / name}") for name in ("whole.parquet", "shards", "set")]
    assert len({data.fingerprint for data in found}) == 1
    assert load(f"table:{tmp_path}/whole.parquet?size=4").shape == (1, 4, 4)


def test_lists_of_numbers_and_columns_of_numbers_are_inputs(tmp_path):
    x = np.random.default_rng(1).normal(size=(6, 2, 2, 3)).astype(np.float32)
    y = ["no", "yes"] * 3
    pq.write_table(pa.table({"x": x.tolist(), "who": y}), tmp_path / "lists.parquet")
    last = load(f"table:{tmp_path}/lists.parquet?labels=who&layout=channels_last")
    np.testing.assert_array_equal(last.inputs, x.transpose(0, 3, 1, 2))
    assert last.classes == ("no", "yes") and last.labels.tolist() == [0, 1] * 3
    pq.write_table(pa.table({"age": [1, 2, 3, 4], "y": [0, 1, 0, 1], "pay": [0.5, 1, 2, 4]}), tmp_path / "t.parquet")
    np.testing.assert_array_equal(load(f"table:{tmp_path}/t.parquet").inputs, [[1, 0.5], [2, 1], [3, 2], [4, 4]])


NO_TABLES = [
    (lambda: images().drop(["label"]), "", r"no column is called label.*\?labels=COLUMN"),
    (images, "?labels=lable", r"labels is 'lable' \(did you mean 'label'\?\)"),
    (lambda: pa.table({"text": ["a", "b"], "label": [0, 1]}), "", r"not all others are numbers \(text\)"),
    (lambda: pa.table({"x": [[1.0], [1.0, 2.0]], "label": [0, 1]}), "", "rows of x have several shapes"),
    (lambda: pa.table({"x": [[1.0], [2.0]], "label": [0, None]}), "", "1 label of 2 missing"),
    (lambda: pa.table({"image": [png(PIXELS[0]), b"GIF89a"], "label": [0, 1]}), "", r"\(row 1\) cannot be read"),
    (lambda: pa.table({"image": [png(PIXELS[0]), png(PIXELS[1], (3, 3))], "label": [0, 1]}), "", r"\?size=N behind it"),
    (lambda: pa.table({"image": pa.array([None, png(PIXELS[0])]), "label": [0, 1]}), "", r"\(row 0\) has no bytes"),
]


@as_one("make, options, pattern", NO_TABLES)
def test_what_is_no_table_costs_one_line(tmp_path, make, options, pattern):
    pq.write_table(make(), tmp_path / "bad.parquet")
    with pytest.raises(BadInput, match=pattern):
        load(f"table:{tmp_path}/bad.parquet{options}")


def test_files_that_cannot_be_read_as_tables_cost_one_line(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(BadInput, match="cannot be read as a table"):
        load(f"table:{tmp_path}/broken.parquet")
    with pytest.raises(BadInput, match="not found in"):
        load(f"table:{tmp_path}/nowhere")


def test_folders_that_are_not_one_data_set_are_refused(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(BadInput, match=r"several splits; give one of them: table:.*/train"):
        load(f"table:{tmp_path}")
    chosen = saved(tmp_path / "rows", images(), state={"_indices_data_files": [{"filename": "indices.arrow"}]})
    with pytest.raises(BadInput, match="flatten_indices"):
        load(f"table:{chosen}")
    away = saved(tmp_path / "away", images(), state={"_data_files": [{"filename": "../elsewhere.arrow"}]})
    with pytest.raises(BadInput, match="not in that folder"):
        load(f"table:{away}")


def test_a_table_that_claims_too_much_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("audits.data.tables.MOST_BYTES", 10_000)
    pq.write_table(pa.table({"x": [[0.0]] * 40_000, "label": np.arange(40_000) % 2}), tmp_path / "bomb.parquet")
    with pytest.raises(BadInput, match="takes more than"):
        load(f"table:{tmp_path}/bomb.parquet")


ROWS = 40
A, B = (np.random.default_rng(seed).normal(size=ROWS).astype(np.float32) for seed in (1, 2))
Y = np.arange(ROWS) % 3
PANDAS = {b"pandas": json.dumps({"index_columns": ["who", {"kind": "range"}]}).encode()}


@as_one("column, metadata", [
        ("__index_level_0__", None), ("Unnamed: 0", None), ("", None), ("id", None), ("ID", None), ("member", None),
        ("split", None), ("group", None), ("is_member", None), ("who", PANDAS),
    ])  # fmt: skip
@as_one("values", [np.arange(ROWS), np.array(["train", "test"] * (ROWS // 2))])
def test_columns_that_number_rows_or_tell_of_membership_are_no_features(tmp_path, column, metadata, values):
    clean = pa.table({"a": A, "b": B, "label": Y})
    table = clean.append_column(column, pa.array(values)).replace_schema_metadata(metadata)
    for name, each in (("clean", clean), ("more", table)):
        pq.write_table(each, tmp_path / f"{name}.parquet")
    found, more = (load(f"table:{tmp_path}/{name}.parquet") for name in ("clean", "more"))
    assert (more.shape, more.fingerprint) == ((2,), found.fingerprint)
    assert found.notes == ()
    assert len(more.notes) == 1 and repr(column) in more.notes[0] and "keep=" in more.notes[0]
    assert describe(f"table:{tmp_path}/more.parquet").notes == more.notes
    if values.dtype.kind == "i" and column:
        kept = load(f"table:{tmp_path}/more.parquet?keep={column.replace(' ', '+')}")
        assert kept.shape == (3,) and kept.inputs[:, 2].tolist() == values.tolist()


def test_columns_to_keep_that_are_not_there_are_refused(tmp_path):
    pq.write_table(pa.table({"a": A, "id": Y, "label": Y}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match=r"keep is 'idd'.*did you mean 'id'"):
        load(f"table:{tmp_path}/t.parquet?keep=idd")


@as_one("values", [
        np.full(ROWS, 7), np.full(ROWS, 0.5), np.arange(ROWS)[::-1] + 2**24, np.arange(ROWS) * 2.0, Y, 2 - Y,
        np.array([0.5, -1.0, 8.0])[Y], 2**24 + np.arange(ROWS) // 2, 2.0**24 + np.arange(ROWS) // 2,
    ])  # fmt: skip
def test_columns_that_are_doubtful_features_are_warned_of_and_stay(tmp_path, values):
    pq.write_table(pa.table({"a": A, "odd": values, "b": B, "label": Y}), tmp_path / "t.parquet")
    found = load(f"table:{tmp_path}/t.parquet")
    assert found.shape == (3,)
    assert len(found.notes) == 1 and "'odd'" in found.notes[0] and "'a'" not in found.notes[0]


def test_ordinary_columns_are_no_doubt(tmp_path):
    counts, coarse = np.arange(ROWS) // 2, Y // 2  # twice each; one value for two labels
    pq.write_table(pa.table({"a": A, "n": counts, "coarse": coarse, "label": Y}), tmp_path / "t.parquet")
    assert load(f"table:{tmp_path}/t.parquet").notes == ()


def test_columns_of_bools_are_features_of_0_and_1(tmp_path):
    pq.write_table(pa.table({"a": A, "c_x": np.arange(ROWS) % 2 == 0, "label": Y}), tmp_path / "t.parquet")
    found = load(f"table:{tmp_path}/t.parquet")
    assert found.shape == (2,) and found.inputs[:4, 1].tolist() == [1, 0, 1, 0] and found.notes == ()
    missing = pa.array([None, *[True, False, False] * (ROWS // 3)])
    pq.write_table(pa.table({"a": A, "c_x": missing, "label": Y}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="1 input values are NaN"):
        load(f"table:{tmp_path}/t.parquet")


@as_one(
    "columns, says",
    [
        ({"x": [[2**24 + 1, 2]] * ROWS}, "would be rounded"),
        ({"x": [["1", "2"]] * ROWS}, "something else than numbers"),
        ({"x": [[1e300, 2]] * ROWS}, "40 input values are beyond .* float32"),
        ({"a": A, "b": np.full(ROWS, -1e300)}, "40 input values are beyond .* float32"),
    ],
)
def test_numbers_that_float32_cannot_hold_are_refused(tmp_path, columns, says):
    pq.write_table(pa.table({**columns, "label": Y}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match=says):
        load(f"table:{tmp_path}/t.parquet")


@pytest.mark.parametrize(("classes", "noted"), [(12, True), (10, False)])
def test_classes_in_the_order_of_texts_are_noted_where_numbers_have_another(tmp_path, classes, noted):
    labels = np.arange(ROWS) % classes
    table = pa.table({"a": A, "label": labels.astype(str)})
    pq.write_table(table, tmp_path / "t.parquet")
    found = load(f"table:{tmp_path}/t.parquet")
    assert [found.classes[label] for label in found.labels] == labels.astype(str).tolist()
    assert len(found.notes) == noted and all("class 2 is '10'" in note for note in found.notes)
    pq.write_table(table.set_column(1, "label", pa.array(labels)), tmp_path / "t.parquet")
    assert load(f"table:{tmp_path}/t.parquet").notes == ()


def test_a_column_that_stands_twice_is_refused(tmp_path):
    pq.write_table(pa.table([A, A, Y], names=["a", "a", "label"]), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="several columns called 'a'"):
        load(f"table:{tmp_path}/t.parquet")


SIZES = ["low", "mid", "high", "extreme"]


def graded(count=1500, ordered=True, sizes=SIZES):
    found = np.random.default_rng(0).choice(SIZES[:3], count)
    columns = np.random.default_rng(1).random((count, 2)).T
    return pd.DataFrame(
        {"a": columns[0], "b": columns[1], "label": pd.Categorical(found, categories=sizes, ordered=ordered)}
    )


def test_ordered_categories_are_classes_in_their_order_and_keep_their_codes(tmp_path):
    frame = graded()
    frame.to_parquet(tmp_path / "set.parquet", row_group_size=400)
    data = load(f"table:{tmp_path / 'set.parquet'}")
    assert data.classes == ("low", "mid", "high", "extreme"), "the one that never occurs has its code as well"
    np.testing.assert_array_equal(data.labels, frame.label.cat.codes)
    assert not any("warning" in note for note in data.notes)


def test_categories_without_an_order_stand_as_texts_do_and_another_order_is_noted(tmp_path):
    frame = graded(ordered=False)
    frame.to_parquet(tmp_path / "set.parquet")
    data = load(f"table:{tmp_path / 'set.parquet'}")
    assert data.classes == ("high", "low", "mid")
    assert [data.classes[label] for label in data.labels] == list(frame.label)
    assert [note for note in data.notes if "categories" in note and "'high'" in note and "'low'" in note]
    frame.assign(label=frame.label.astype(str).astype("category")).to_parquet(tmp_path / "set.parquet")
    assert not any("categories" in note for note in load(f"table:{tmp_path / 'set.parquet'}").notes)


def test_files_whose_categories_have_several_orders_are_refused(tmp_path):
    graded().to_parquet(tmp_path / "a.parquet")
    graded(sizes=SIZES[::-1]).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(BadInput, match=r"in several orders: low, mid, high, extreme, and extreme, high, mid, low"):
        load(f"table:{tmp_path}")
    graded().to_parquet(tmp_path / "b.parquet")
    assert len(load(f"table:{tmp_path}").labels) == 3000


TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
]


@as_one("kind", TEXTS)
def test_texts_of_any_type_are_labels(tmp_path, kind):
    names = ["NA", "b", "NA", "c", "b", "c"]
    pq.write_table(pa.table({"a": np.arange(6) % 4 / 3, "label": as_type(names, kind)}), tmp_path / "set.parquet")
    data = load(f"table:{tmp_path / 'set.parquet'}")
    assert data.classes == ("NA", "b", "c") and [data.classes[label] for label in data.labels] == names


def as_type(texts, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(texts, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(texts, kind)


@as_one("label, more", [("label", ["y"]), ("target", ["y"]), ("y", []), ("class", ["y"])])
def test_coordinates_are_features_and_no_inputs_or_labels(tmp_path, label, more):
    coordinates = {name: np.linspace(0, 1, 6) for name in ("x", *more)}
    pq.write_table(pa.table({**coordinates, label: [0, 1] * 3}), tmp_path / "points.parquet")
    found = load(f"table:{tmp_path}/points.parquet" + ("?labels=class" if label == "class" else ""))
    assert found.inputs.shape == (6, 1 + len(more))
    assert found.labels.tolist() == [0, 1] * 3


def test_a_label_that_may_be_either_of_two_columns_is_asked_for(tmp_path):
    pq.write_table(pa.table({"x": [0.0, 0.5], "y": [3, 4], "target": [0, 1]}), tmp_path / "points.parquet")
    with pytest.raises(BadInput, match=r"y and target .*\?labels=COLUMN"):
        load(f"table:{tmp_path}/points.parquet")
    assert load(f"table:{tmp_path}/points.parquet?labels=target").inputs.tolist() == [[0.0, 3.0], [0.5, 4.0]]
    pq.write_table(pa.table({"x": [0.0, 0.5], "y": [0.1, 0.2]}), tmp_path / "none.parquet")
    with pytest.raises(BadInput, match=r"no column is called .* holds whole numbers or names.*\?labels=COLUMN"):
        load(f"table:{tmp_path}/none.parquet")


@pytest.mark.parametrize("shape", ["map", "struct of a map"])
def test_a_column_of_maps_keeps_no_table_from_being_read(shape: str, tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    values = pa.array([[("a", 1)], [], [("b", 2), ("c", 3)]] * 10, kind)
    column = values if shape == "map" else pa.StructArray.from_arrays([values], ["inner"])
    table = pa.table({"words": ["x", "y", "z"] * 10, "notes": column})
    pq.write_table(table, tmp_path / "t.parquet")
    assert table_within(tmp_path / "t.parquet", "t.parquet").equals(table)


@as_one("offset", [-1, 300, 100_000, 2**31 - 1])
def test_texts_of_an_arrow_file_lie_within_it(offset: int, tmp_path: Path) -> None:
    table = pa.table({"label": ["abcde"] * 40, "x": np.arange(40.0)})
    with pa.OSFile(str(tmp_path / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    offsets = np.arange(0, 201, 5, dtype=np.int32)
    content = (tmp_path / "data.arrow").read_bytes()
    assert content.count(offsets.tobytes()) == 1 and read_table(tmp_path).equals(table)
    changed = offsets.copy()
    changed[10] = offset
    (tmp_path / "data.arrow").write_bytes(content.replace(offsets.tobytes(), changed.tobytes()))
    with pytest.raises(BadInput, match="cannot be read"):
        read_table(tmp_path)
