"""Pages of what plans choose from: attacks and unlearning methods one by one, all else in tables."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from audits.data.catalogue import CATALOGUE
from audits.models import MODELS
from audits.registry import Registry
from audits.unlearning import UNLEARNERS
from docs.from_code.docstrings import LABELS, fields_of, introduction, parts
from docs.from_code.plans import default_of, shown
from docs.from_code.text import code, doc_of, page, prose, summary, table
from docs.from_code.types import words
from orchestrator.cli.listing import first_comment, first_sentence, layered_models
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.kinds import KINDS, kind_named
from tune_spaces import SWEEPS

ROOT = Path(__file__).resolve().parents[2]
ATTACKS, METHODS = "reference/attacks", "reference/unlearners"
ACCESS: Mapping[str, str] = {
    "labels": "labels: the class that the target answers, and nothing else",
    "posteriors": "posteriors: the probability of each class",
    "logits": "logits: the scores before the softmax",
    "oracle": "oracle: posteriors, and the membership of points of the target itself, which no attacker has",
    "white_box": "white box: weights, and with them losses, gradients and activations",
}
"""What an attacker sees of the target at each access that an attack declares."""


def pages() -> dict[str, str]:
    """Return the pages by their place in the documentation."""
    found = {f"{ATTACKS}/index.md": all_attacks(), f"{METHODS}/index.md": all_methods()}
    for kind, attacks in registries("attacks"):
        found |= {f"{ATTACKS}/{kind.name}/{name}.md": attack_page(kind, name, attacks[name]) for name in attacks}
    found |= {f"{METHODS}/{name}.md": method_page(name, UNLEARNERS[name]) for name in UNLEARNERS}
    found["reference/models.md"] = models_page()
    found["reference/data.md"] = data_page()
    found["reference/selectors.md"] = listed("Selectors", "selectors")
    found["reference/rankings.md"] = listed("Rankings", "rankings")
    found["reference/shipped-sweeps.md"] = sweeps_page()
    found["reference/shipped-plans.md"] = plans_page()
    return found


def registries(what: str) -> list[tuple[Kind, Registry[Any]]]:
    """Return the kinds of audits that have a registry called ``what``, and that registry."""
    kinds = [kind_named(name) for name in KINDS]
    return [(kind, kind.registries[what]) for kind in kinds if what in kind.registries]


def all_attacks() -> str:
    """Return the page that lists all attacks by kind of audit."""
    accesses = [(code(name), text.partition(": ")[2]) for name, text in ACCESS.items()]
    blocks = []
    for kind, attacks in registries("attacks"):
        rows = [
            (f"[`{name}`]({kind.name}/{name}.md)", str(attacks[name].access), first(attacks[name])) for name in attacks
        ]
        blocks += [f"## {kind.name}", prose(kind.question), table(("attack", "access", ""), rows)]
    return page(
        "Attacks",
        "An attack declares the access that it needs and is shown no more of the target than that. It returns a score "
        "for each point, higher where it takes the point for a member (or for a forgotten one); decisions come from "
        "thresholds that are fixed before the target is asked ([how](../../explanation/promises.md)).",
        table(("access", "the attacker sees"), accesses),
        *blocks,
    )


def attack_page(kind: Kind, name: str, attack: Any) -> str:
    """Return the page of one attack."""
    said = parts_of(attack)
    facts = [
        ("audit", f"[`{kind.name}`](../../plans/{kind.name}.md)"),
        ("access", ACCESS[attack.access]),
        ("name in a plan", f"`audit.attacks: [{name}]`"),
        ("code", code(source_of(attack))),
    ]
    blocks = [f"## {heading(label)}\n\n{prose(begun(said[label]))}" for label in LABELS if label in said]
    return page(f"{name} ({kind.name})", prose(said[""]), table(("", ""), facts), *blocks, settings_table(attack))


def begun(text: str) -> str:
    """Return a text that begins with a capital letter, unless it begins with a formula or with code."""
    word = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if word.strip(",:").isalpha() and word != "log" else text


def heading(label: str) -> str:
    """Return the heading of a part of an attack's page."""
    return {"Deviations": "Deviations from the source", "Not for": "When not to use it"}.get(label, label)


def parts_of(attack: Any) -> dict[str, str]:
    """Return the parts of an attack's docstring; those that it leaves out are its parent's."""
    kind = attack if isinstance(attack, type) else type(attack)
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found |= parts(doc_of(base)) if base.__module__.startswith("audits.") and "__doc__" in vars(base) else {}
    return found


def all_methods() -> str:
    """Return the page that lists the unlearning methods."""
    rows = [(f"[`{name}`]({name}.md)", first(UNLEARNERS[name])) for name in UNLEARNERS]
    return page(
        "Unlearning methods",
        "A method takes a model, its forget set and its retain set, and returns a new model. `unlearning` of an "
        "[Apollo plan](../plans/apollo.md) lists methods with their settings; where settings are left out, those that "
        "were tuned for the data, the architecture and the forget ratio are filled in if there are any "
        "([presets](../../results/presets.md)).",
        table(("method", ""), rows),
    )


def method_page(name: str, method: Any) -> str:
    """Return the page of one unlearning method."""
    facts = [
        ("name in a plan", f"`unlearning: [{{method: {name}}}]`"),
        ("reads", " and ".join(word for word, read in reads(method) if read) or "neither set"),
        ("starts from", "a fresh model" if method.trains_from_scratch else "the trained model"),
        ("code", code(source_of(method))),
    ]
    source = prose(summary(doc_of(inspect.getmodule(method))))
    blocks = [*prose(doc_of(method)).split("\n\n"), table(("", ""), facts), f"## Source\n\n{source}"]
    return page(name, *blocks, settings_table(method))


def reads(method: Any) -> list[tuple[str, bool]]:
    """Return which sets decide the result of a method."""
    return [("forget set", method.reads_forget), ("retain set", method.reads_retain)]


def settings_table(component: Any) -> str:
    """Return the settings of a component as a table under a heading; "" where it has none."""
    kind = component if isinstance(component, type) else type(component)
    if not dataclasses.is_dataclass(kind) or not dataclasses.fields(kind):
        return ""
    rows = list(settings(kind))
    return "\n\n".join(["## Settings", table(("setting", "value", "default", ""), rows)]) if rows else ""


def settings(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield the settings of a component as rows: name, type, default, text."""
    hints, texts = get_type_hints(kind, include_extras=True), fields_of(kind)
    assert dataclasses.is_dataclass(kind), kind
    for field in dataclasses.fields(kind):
        text = prose(texts.get(field.name, ""))
        yield code(field.name), words(hints[field.name]), shown(default_of(field)), text


def models_page() -> str:
    """Return the page of all architectures: settings, and the layers that transfer learning counts."""
    layered = {model.name: model for model in layered_models()}
    blocks = []
    for name in layered:
        blocks += [f"## {code(name)}", prose(doc_of(MODELS[name]))]
        blocks += [settings_table(MODELS[name]).replace("## Settings\n\n", "")]
        model = layered[name]
        if model.layers:
            shape = "×".join(str(side) for side in model.shape)
            last = len(model.layers) - 1
            blocks.append(
                f"With default settings, inputs of {shape} and {model.classes} classes it has {len(model.layers)} "
                f"layers, the output among them: `transfer.n_frozen` can be 0 to {last}. "
                f"`orch ls models --layers` lists them."
            )
    return page("Architectures", "`model.name` of a plan, with `model.settings`.", *blocks)


def data_page() -> str:
    """Return the page of all data sets."""
    rows = [(code(CATALOGUE[name].form), prose(CATALOGUE[name].description)) for name in CATALOGUE]
    return page(
        "Data sets",
        "`data.name` of a plan, in the form that the first column gives; what stands behind `?` may be left out. "
        "`orch data ls` says where each one is looked for, and `data.root` names another folder. Nothing is "
        "downloaded. How large sets of image files are read: [data](../how-to/data.md).",
        table(("name", ""), rows),
    )


def listed(title: str, what: str) -> str:
    """Return the page of a registry whose entries need no page each."""
    blocks = []
    for kind, entries in registries(what):
        for name in entries:
            text = doc_of(entries[name])
            body = introduction(text) if isinstance(entries[name], type) else text.removeprefix("Return ")
            blocks += [f"## {code(name)}", prose(body[:1].upper() + body[1:]), settings_table(entries[name])]
            blocks[-1] = blocks[-1].replace("## Settings\n\n", "")
        blocks.insert(0, f"Of the audit [`{kind.name}`](plans/{kind.name}.md).")
    return page(title, *blocks)


def sweeps_page() -> str:
    """Return the page of the shipped sweeps."""
    rows = [(code(name), prose(SWEEPS[name].title), code(SWEEPS[name].base)) for name in SWEEPS]
    return page(
        "Sweeps",
        "`orch sweep NAME` runs one; `orch cp NAME FILE` copies one that is a file, to edit it. "
        "[Sweeps of your own](../how-to/sweeps.md) says how they are written.",
        table(("sweep", "", "starts from the plan"), rows),
    )


def plans_page() -> str:
    """Return the page of the shipped plans."""
    rows = [(code(name), prose(first_comment(text))) for name, text in shipped_plans().items()]
    return page(
        "Shipped plans",
        "`orch audit KIND NAME` runs one, `orch cost NAME` says what it costs, `orch cp NAME FILE` copies it.",
        table(("plan", ""), rows),
    )


def first(component: Any) -> str:
    """Return the first sentence of a component's docstring as Markdown."""
    return prose(first_sentence(component))


def source_of(component: Any) -> str:
    """Return the file that defines a component, in the repository."""
    kind = component if inspect.isclass(component) or inspect.isfunction(component) else type(component)
    return Path(inspect.getsourcefile(kind) or "").resolve().relative_to(ROOT).as_posix()
