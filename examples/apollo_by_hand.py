"""Apollo in a notebook's way: the library alone, without Ray, MLflow or the command.

python examples/apollo_by_hand.py     # under a minute on one core; one target says nothing about noise
"""

from __future__ import annotations

from audits.apollo import (
    ATTACKS,
    KINDS,
    Case,
    Evidence,
    Group,
    Member,
    Part,
    Questions,
    SearchSettings,
    Split,
    in_order,
    make_partition,
)
from audits.data import load
from audits.models import make_model
from audits.queries import label_oracle, posterior_oracle
from audits.seeds import derive_seed
from audits.statistics import auc
from audits.training import Recipe, train_model
from audits.unlearning import make_unlearner

SEED = 0
SPLIT = Split(
    targets=1,
    train_size=500,
    target_pool=500,
    shadow_pool=18_000,
    test_pool=1_000,
    forget=0.1,
    candidates_forget=50,
    candidates_unseen=50,
    shadows=16,
    offline_shadows=2,
)
SHOWN = ("apollo", "random_directions", "yoqo", "single_query", "label_gap", "lira")


def main() -> dict[str, float]:
    """Train a target and its shadows, unlearn, attack; print and return the AUC of each attack."""
    data = load("fashion14")
    partition = make_partition(len(data), SPLIT, SEED)
    recipe = Recipe()
    unlearner = make_unlearner("gradient_ascent", {"learning_rate": 0.04})

    def build(seed: int):  # type: ignore[no-untyped-def]  # a module
        return make_model("mlp", {}).build(data.shape, len(data.classes), seed)

    def models(member: Member):  # type: ignore[no-untyped-def]  # two modules
        original = train_model(build, data.tensors(member.train), recipe, derive_seed(SEED, "train", member.name))
        forgetful = unlearner.unlearn(
            original, data.tensors(member.forget), data.tensors(member.retain), seed=derive_seed(SEED, member.name)
        )
        return original.requires_grad_(False), forgetful.requires_grad_(False)

    asked = partition.candidates[0]
    groups = []
    for number in (1, 2):
        members = partition.select("shadow", 0, number)
        pairs = [models(member) for member in members]
        inside = partition.membership(members, asked.ids)
        groups.append(
            Group([original for original, _ in pairs], [forgetful for _, forgetful in pairs], inside, ~inside)
        )
    (target,) = partition.select("target", 0)
    _, published = models(target)

    x, y = data.tensors(asked.ids).all()
    questions = Questions(x.flatten(1), y, asked.ids, asked.target, data.shape, data.value_range, SEED)
    parts: dict[str, Part] = {}
    for kind in in_order([kind for name in SHOWN for kind in ATTACKS[name].reads]):
        case = Case(
            questions,
            SearchSettings(),
            online=(groups[0], groups[1]),
            labels={0: label_oracle(published)},
            posteriors={0: posterior_oracle(published)} if KINDS[kind].part.access == "posteriors" else {},
            earlier=parts,
        )
        parts[kind] = KINDS[kind]().gather(case)
    found = {}
    for name in SHOWN:
        finding = ATTACKS[name]().judge(Evidence(parts))
        found[name] = float(auc(finding.score, asked.forgotten))
        print(f"{name:18} {ATTACKS[name].access:10} {finding.queries.max():3} queries  AUC {found[name]:.3f}")
    return found


if __name__ == "__main__":
    main()
