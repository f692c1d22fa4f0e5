"""Evidence end to end on tiny networks: who draws, who is asked, what it costs, and that nobody is mixed up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from audits.attacks import ATTACKS
from audits.data.partition import Partition, Split, make_partition
from audits.data.toy2d import make
from audits.errors import BadInput
from audits.evidence import KINDS, Case, Evidence, Group, Part, Posteriors, Questions, SearchSettings, Walks, in_order
from audits.evidence import adversarial as adversarial_file
from audits.evidence import oslo as oslo_file
from audits.evidence import yoqo as yoqo_file
from audits.evidence.asking import ask_targets
from audits.evidence.boundary import Distances
from audits.evidence.plus import Standings, ladder_sizes
from audits.evidence.search import random_walk, search
from audits.evidence.shadows import Shadows
from audits.models import make_model
from audits.oracles import LabelOracle, PosteriorOracle, label_oracle, logit_oracle, posterior_oracle

SPLIT = Split(
    targets=2,
    train_size=30,
    target_pool=60,
    shadow_pool=120,
    test_pool=20,
    forget=0.3,
    candidates_forget=4,
    candidates_unseen=4,
    shadows=8,
    offline_shadows=4,
    targets_per_shadow_set=2,
)
STEPS = 3
SETTINGS = SearchSettings(epsilon=0.2, steps=STEPS, learning_rate=0.1)
WALK = 1 + 2 * 2 * STEPS
BUDGET = 21
DATA = make(points=200)
CANDIDATES = 16
LABEL_KINDS = [name for name in KINDS if KINDS[name].part.access == "labels"]


def network(seed: int) -> nn.Module:
    model = make_model("mlp", {"hidden": [6]}).build((2,), 4, seed).double().eval().requires_grad_(False)
    return model


@dataclass
class Scene:
    """A two-target shadow set with random networks in place of trained ones."""

    partition: Partition
    questions: Questions
    population: Questions
    online: tuple[Group, Group]
    offline: tuple[Group, Group]
    targets: dict[int, nn.Module]

    def case(self, name: str, **changes: object) -> Case:
        """Return the case for one kind: what it reads, what comes before it, and no more than its access."""
        kind = KINDS[name]
        case = Case(
            self.questions,
            SETTINGS,
            online=self.online if "online" in kind.reads else None,
            offline=self.offline if "offline" in kind.reads else None,
            population=self.population if "population" in kind.settings else None,
            budget=BUDGET,
        )
        if kind.part.access == "labels":
            case = replace(case, labels=self.label_oracles())
        case = replace(case, **changes)
        if kind.traced and not case.trace:
            case = replace(case, trace=kind().trace(case))
        return replace(case, earlier={earlier: self.gather(earlier, **changes) for earlier in kind.after})

    def gather(self, name: str, **changes: object) -> Part:
        """Return the part of one kind; labels, if any, come from fresh oracles."""
        changes = changes or {
            "posteriors": {index: posterior_oracle(model) for index, model in self.targets.items()},
            "logits": {index: logit_oracle(model) for index, model in self.targets.items()},
        }
        return KINDS[name]().gather(self.case(name, **changes))

    def walks(self, name: str, **changes: object) -> Walks:
        """Return the walks of one kind."""
        found = self.gather(name, **changes)
        assert isinstance(found, Walks)
        return found

    def label_oracles(self, budget: int | None = None) -> dict[int, LabelOracle]:
        """Return fresh label oracles."""
        return {index: label_oracle(model, budget) for index, model in self.targets.items()}


@pytest.fixture(scope="module")
def scene() -> Scene:
    partition = make_partition(200, SPLIT, 0)
    asked = partition.candidates[0]

    def questions(ids: np.ndarray, owner: np.ndarray) -> Questions:
        rows = DATA.tensors(ids)
        return Questions(rows.x.double(), rows.y, ids, owner, (2,), None, seed=5, chunk=9)

    online, offline = [], []
    for group in (1, 2):
        members = partition.select("shadow", 0, group)
        inside = partition.membership(members, asked.ids)
        count = len(members)
        online.append(Group(networks(count, 100 * group), networks(count, 100 * group + 50), inside, ~inside))
        never = np.zeros((2, len(asked.ids)), dtype=bool)
        offline.append(Group(networks(2, 300 * group), networks(2, 300 * group + 50), never, ~never))
    rest = np.setdiff1d(np.arange(200), asked.ids)[:60]
    return Scene(
        partition,
        questions(asked.ids, asked.target),
        questions(rest, np.zeros(len(rest), dtype=np.int64)),
        (online[0], online[1]),
        (offline[0], offline[1]),
        {0: network(1), 1: network(2)},
    )


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few steps do: no fact of this file depends on how far a search gets."""
    monkeypatch.setattr(yoqo_file, "STEPS", 4)
    monkeypatch.setattr(oslo_file, "LEVELS", 3)


def networks(count: int, seed: int) -> list[nn.Module]:
    return [network(seed + i) for i in range(count)]


def trace_of(scene: Scene, group: Group, *, offline: bool = False):
    asked = scene.questions
    shadows = Shadows(
        group.original, group.unlearned, torch.from_numpy(group.inside), (2,), torch.from_numpy(group.outside)
    )
    return search(shadows, asked.x, asked.y, asked.directions(), SETTINGS, offline=offline, value_range=None)


def says_true(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> bool:
    return bool(model(x[None]).argmax() == y)


def check_answers(scene: Scene, walks: Walks, g: int, inputs: torch.Tensor, judge: Group, *, at_x: bool = True) -> None:
    """Assert that the answers along ``inputs`` (K, D, T, 2) are those of the own target and of every judge."""
    asked = scene.questions
    np.testing.assert_array_equal(walks.inside[g], judge.inside)
    np.testing.assert_array_equal(walks.outside[g], judge.outside)
    for k in range(CANDIDATES):
        places = [*([asked.x[k]] if at_x else []), *inputs[k].flatten(0, 1)]
        target = scene.targets[int(asked.owner[k])]
        assert walks.target[g, k].tolist() == [says_true(target, place, asked.y[k]) for place in places]
        for i, model in enumerate(judge.unlearned):
            assert walks.pseudo[g, i, k].tolist() == [says_true(model, place, asked.y[k]) for place in places]


@pytest.mark.parametrize("name", ["apollo", "random"])
def test_walks_are_those_of_each_halfs_search_asked_of_the_other_half_and_of_the_own_target(
    scene: Scene, name: str
) -> None:
    walks = scene.walks(name)
    for g in (0, 1):
        trace = trace_of(scene, scene.online[g])
        inputs = trace.inputs
        if name == "random":
            inputs = random_walk(scene.questions.x, scene.questions.directions(), trace.radius, None)
        np.testing.assert_allclose(walks.radius[g], trace.radius.numpy(), rtol=0, atol=1e-12)
        check_answers(scene, walks, g, inputs, scene.online[1 - g])


def test_the_confidence_is_the_mean_over_the_shadows_that_drew_the_walk_and_never_saw_the_point(scene: Scene) -> None:
    walks = scene.walks("apollo")
    for g, own in enumerate(scene.online):
        trace = trace_of(scene, own)
        for k in range(CANDIDATES):
            outside = np.flatnonzero(own.outside[:, k])
            for way in range(2):
                for t in range(STEPS):
                    values = [
                        own.original[i](trace.inputs[k, way, t][None]).softmax(1)[0, scene.questions.y[k]].item()
                        for i in outside
                    ]
                    assert abs(walks.confidence[g, k, way, t] - np.mean(values)) < 1e-10


def kept_by_some(group: Group) -> Group:
    """Return the group with one inside shadow of every candidate that kept it: neither inside nor outside."""
    first = group.inside & (np.cumsum(group.inside, axis=0) == 1)
    return replace(group, inside=group.inside & ~first)


def test_a_shadow_that_kept_a_candidate_draws_nothing_and_judges_nothing(scene: Scene) -> None:
    groups = (kept_by_some(scene.online[0]), kept_by_some(scene.online[1]))
    walks = scene.walks("apollo", online=groups)
    assert all((~(group.inside | group.outside)).any(0).all() for group in groups)
    for g in (0, 1):
        trace = trace_of(scene, groups[g])
        np.testing.assert_allclose(walks.radius[g], trace.radius.numpy(), rtol=0, atol=1e-12)
        check_answers(scene, walks, g, trace.inputs, groups[1 - g])
    changed = replace(walks, pseudo=np.where((walks.inside | walks.outside)[..., None], walks.pseudo, ~walks.pseudo))
    for name in ("apollo", "apollo_paper"):
        one, other = (ATTACKS[name]().judge(Evidence({"apollo": each})) for each in (walks, changed))
        np.testing.assert_array_equal(one.score, other.score)
        np.testing.assert_array_equal(one.null, other.null)


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_target_is_asked_as_often_as_the_kind_says_and_only_about_its_own_candidates(scene: Scene, name: str) -> None:
    asked = scene.label_oracles()
    earlier = {before: scene.gather(before) for before in KINDS[name].after}
    found = KINDS[name]().gather(replace(scene.case(name), labels=asked, earlier=earlier))
    cost = KINDS[name].queries(SETTINGS, BUDGET)
    for owner, oracle in asked.items():
        own = scene.questions.owner == owner
        assert set(oracle.counter.asked(scene.questions.ids[own]).tolist()) == {cost}
        assert set(oracle.counter.asked(scene.questions.ids[~own]).tolist()) == {0}
    assert found.arrays()["queries"].tolist() == [cost] * CANDIDATES


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_budget_below_the_cost_is_refused(scene: Scene, name: str) -> None:
    cost = KINDS[name].queries(SETTINGS, BUDGET)
    case = scene.case(name)
    KINDS[name]().gather(replace(case, labels=scene.label_oracles(cost)))
    with pytest.raises(BadInput, match="budget"):
        KINDS[name]().gather(replace(case, labels=scene.label_oracles(cost - 1)))


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_shards_of_candidates_join_to_the_whole(scene: Scene, name: str) -> None:
    case = scene.case(name)
    whole = KINDS[name]().gather(case)
    parts = [KINDS[name]().gather(shard_of(scene, name, rows)) for rows in (slice(0, 6), slice(6, 16))]
    for field, values in type(whole).joined(parts).arrays().items():
        np.testing.assert_allclose(values, whole.arrays()[field], rtol=0, atol=1e-9, err_msg=field)


def shard_of(scene: Scene, name: str, rows: slice) -> Case:
    asked = scene.questions
    own = replace(asked, x=asked.x[rows], y=asked.y[rows], ids=asked.ids[rows], owner=asked.owner[rows])

    def cut(groups: tuple[Group, Group]) -> tuple[Group, Group]:
        first, second = (replace(one, inside=one.inside[:, rows], outside=one.outside[:, rows]) for one in groups)
        return first, second

    return replace(scene, questions=own, online=cut(scene.online), offline=cut(scene.offline)).case(name)


def test_the_published_costs_are_those_of_the_methods() -> None:
    costs = {name: KINDS[name].queries(SETTINGS, BUDGET) for name in LABEL_KINDS}
    assert {name: costs[name] for name in ("point", "yoqo", "oslo")} == {"point": 1, "yoqo": 2, "oslo": 2}
    assert {costs[name] for name in ("apollo", "random", "offline")} == {WALK}
    assert max(costs.values()) <= BUDGET


def constant(label: int) -> LabelOracle:
    return LabelOracle(lambda points: torch.full((len(points),), label, dtype=torch.int64))


def test_each_candidate_is_asked_of_its_own_target(scene: Scene) -> None:
    questions = scene.questions
    assert set(questions.owner) == {0, 1}
    found = ask_targets({0: constant(0), 1: constant(1)}, questions.x[:, None], questions)
    assert found[:, 0].tolist() == questions.owner.tolist()
    wanted = questions.y.numpy() == questions.owner
    for name in LABEL_KINDS:
        part = scene.gather(name, labels={0: constant(0), 1: constant(1)})
        if isinstance(part, Distances):
            np.testing.assert_array_equal(part.target, np.where(wanted, np.inf, -np.inf))
        elif isinstance(part, Standings):
            rungs = 2 ** ladder_sizes(SETTINGS)[1] - 1
            np.testing.assert_array_equal(
                part.target, np.broadcast_to(rungs * wanted[None, :, None], part.target.shape)
            )
        else:
            target = part.arrays()["target"]
            np.testing.assert_array_equal(target, np.broadcast_to(wanted[None, :, None], target.shape))


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_candidate_whose_target_is_absent_is_an_error_not_a_made_up_answer(scene: Scene, name: str) -> None:
    case = scene.case(name)
    with pytest.raises(KeyError, match="1"):
        KINDS[name]().gather(replace(case, labels={0: constant(0)}))


def test_posteriors_of_an_absent_target_are_an_error_not_made_up(scene: Scene) -> None:
    with pytest.raises(KeyError, match="1"):
        scene.gather("posteriors", posteriors={0: posterior_oracle(scene.targets[0])})


def test_directions_belong_to_the_point_whatever_the_shard(scene: Scene) -> None:
    whole = scene.questions
    rows = slice(5, 9)
    part = Questions(whole.x[rows], whole.y[rows], whole.ids[rows], whole.owner[rows], (2,), None, seed=5)
    assert torch.equal(part.directions(), whole.directions()[rows])
    assert torch.allclose(whole.directions().norm(dim=-1), torch.ones(16, 2, dtype=torch.float64), atol=1e-6)
    other = Questions(whole.x, whole.y, whole.ids, whole.owner, (2,), None, seed=6)
    assert not torch.equal(other.directions(), whole.directions())
    assert whole.directions(5, "more").shape == (16, 5, 2)


def test_offline_walks_are_drawn_once_and_judged_by_the_other_half_of_every_method(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []

    def counted(*arguments: object, **named: object) -> object:
        searches.append(1)
        return search(*arguments, **named)

    monkeypatch.setattr(adversarial_file, "search", counted)
    methods = {
        "identity": tuple(replace(group, unlearned=group.original) for group in scene.offline),
        "scrub": scene.offline,
    }
    unread = tuple(replace(group, unlearned=[]) for group in scene.offline)
    trace = KINDS["offline"]().trace(scene.case("offline", trace={"": np.empty(0)}, offline=unread))
    assert len(searches) == 2
    for groups in methods.values():
        unsearched = tuple(replace(group, original=[]) for group in groups)
        walks = scene.walks("offline", offline=unsearched, trace=trace)
        assert not walks.inside.any() and walks.outside.all()
        for g in (0, 1):
            drawn = trace_of(scene, scene.offline[g], offline=True)
            np.testing.assert_allclose(walks.confidence[g], drawn.confidence.mean(0).numpy(), rtol=0, atol=1e-12)
            check_answers(scene, walks, g, drawn.inputs, groups[1 - g])
    assert len(searches) == 2


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].traced])
def test_a_trace_reads_original_shadows_alone(scene: Scene, name: str) -> None:
    def unlearned_gone(groups: tuple[Group, Group]) -> tuple[Group, Group]:
        first, second = (replace(group, unlearned=[]) for group in groups)
        return first, second

    case = replace(scene, offline=unlearned_gone(scene.offline)).case(name)
    for key, values in case.trace.items():
        np.testing.assert_array_equal(values, scene.case(name).trace[key])


def test_posteriors_are_those_of_every_shadow_before_and_after_and_of_the_own_target(scene: Scene) -> None:
    asked = {index: posterior_oracle(model) for index, model in scene.targets.items()}
    found = scene.gather("posteriors", posteriors=asked)
    assert isinstance(found, Posteriors)
    models = {
        name: [model for group in scene.online for model in getattr(group, name)] for name in ("original", "unlearned")
    }
    questions = scene.questions
    for k in range(CANDIDATES):
        x = questions.x[k : k + 1]
        for i in range(len(models["original"])):
            for answers, name in ((found.original, "original"), (found.shadow, "unlearned")):
                wanted = models[name][i](x).log_softmax(1)[0].numpy()
                np.testing.assert_allclose(answers[i, k], wanted, rtol=0, atol=1e-6)
        wanted = scene.targets[int(questions.owner[k])](x).log_softmax(1)[0].numpy()
        np.testing.assert_allclose(found.target[k], wanted, rtol=0, atol=1e-6)
    assert found.labels.tolist() == questions.y.tolist()
    assert found.queries.tolist() == [1] * CANDIDATES
    for owner, oracle in asked.items():
        assert oracle.counter.asked(questions.ids).tolist() == (questions.owner == owner).astype(int).tolist()


def test_kinds_come_behind_what_they_read() -> None:
    assert in_order(["random", "point"]) == ("apollo", "random", "point")
    assert in_order(["apollo", "random", "apollo"]) == ("apollo", "random")


def test_every_attack_judges_what_was_gathered(scene: Scene) -> None:
    oracles: dict[str, dict[int, PosteriorOracle]] = {
        "posteriors": {index: posterior_oracle(model) for index, model in scene.targets.items()},
        "logits": {index: logit_oracle(model) for index, model in scene.targets.items()},
    }
    parts = {name: scene.gather(name, **oracles) for name in KINDS}
    truth = scene.partition.candidates[0].forgotten
    for name in ATTACKS:
        finding = ATTACKS[name]().judge(Evidence({kind: parts[kind] for kind in ATTACKS[name].reads}, truth))
        assert finding.score.shape == (CANDIDATES,) and np.isfinite(finding.score).all()
