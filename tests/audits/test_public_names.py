"""What somebody at a prompt imports lies where they would look for it, and importing a package costs nothing."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.families import as_one

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLIC = {
    "audits.apollo": """ATTACKS KINDS Attack Candidates Case Evidence Finding ForgetClasses ForgetIds Group Kind Member
        Part Partition Posteriors Questions SearchSettings Split Walks at_budget drawn_by groups_of heat_map in_order
        make_partition""",
    "audits.data": """CATALOGUE Dataset Description Request Source TensorSet describe fingerprint load names points_of
        write_shards""",
    "audits.gnq": """CANARIES GROUPS GradientInversionSettings GroupAuc Inversion InversionSettings Likeness Onion
        POOL_ATTACKS PoolAnswers PoolAttack Pools Reconstruction Twins bin_aucs canary_ranks compare compared draw_pools
        draw_twins exposure fit_noised group_aucs inferred_labels invert kept_points loss_gap noise_scale planted
        point_gradients reconstruct two_sided_auc vulnerability""",
    "audits.gradients": """LAYERS LayerRule OuterRule check_auditable from_rows gradients gram_rows made_auditable
        row_shards rule_of squared_norms white_box_features""",
    "audits.mia": """Attack Case Distances Finding GivenPool Inputs Labels MIA_ATTACKS Posteriors canary_labels case_of
        draw_given_pool""",
    "audits.models": "Architecture Layer MODELS layers_of make_model",
    "audits.queries": """ABSOLUTE Access Counter Endpoint Found HttpLabels HttpPosteriors LabelOracle PLAIN Pace
        PosteriorOracle RANK Reading Schedule distances distances_of_models label_oracle logit_oracle mlflow_endpoint
        posterior_oracle recorded_labels recorded_logits recorded_posteriors starts_from_pool""",
    "audits.signals": """dominance evidence_of gaussian log_likelihood_ratio log_loss losses minus_loss moments
        of_true_class scaled surprise""",
    "audits.statistics": """Cell NullBand Outcome Rate auc cells clopper_pearson cluster_bootstrap cluster_jackknife_t
        decided delong_interval exposed_points family_q_values holm ibragimov_mueller_t measure measure_null null_band
        p_values paired_difference per_target_auc permutation_p q_values radius_intervals spearman summarise tpr_at_fpr
        within_auc""",
    "audits.targets": "Blind Weights blind_test read_members read_weights with_weights",
    "audits.tmia": """ATTACKS Answers Attack CandidateUniqueness Case Clusters JUDGED JudgeSettings Labels Map
        MembershipDesign MembershipSplit NoiseVotes Pairs Posteriors Ruling SELECTORS Scores Selector WhiteBox chosen
        corrected_p k_means k_means_streamed make_membership make_pairs other_side rank_p scores_rows smoothed_p""",
    "audits.training": """EpochReport Observer Recipe Team accuracy check_private delta_of fit_private fit_stacked
        logits noise_of spent spent_epsilon steps_per_epoch student_of teacher_from train_model train_student""",
    "audits.uniqueness": """InBatch MODES RANKINGS Trace bits_upper fit_kept fit_traced gradient_uniqueness
        log_uniqueness newcomers_uniqueness point_scores steps_of train_watched uniqueness_from_gram""",
    "audits.unlearning": "Task UNLEARNERS Unlearner make_unlearner",
}
LOOSE = {"audits.arrays", "audits.errors", "audits.memory", "audits.registry", "audits.seeds"}
LIGHT = (
    "audits.apollo.attacks",
    "audits.apollo.evidence",
    "audits.data.catalogue",
    "audits.data.dataset",
    "audits.gnq.attacks",
    "audits.gnq.gradient_inversion.settings",
    "audits.gnq.inversion_settings",
    "audits.mia.attacks",
    "audits.queries.access",
    "audits.queries.hop_skip_jump_schedule",
    "audits.seeds",
    "audits.tmia.attacks",
    "audits.tmia.selectors",
    "audits.training.recipe",
    "audits.uniqueness.rankings",
    "tune_spaces",
    *PUBLIC,
)
"""Modules in which plans look names up: they import neither torch nor anything else that takes seconds."""


@as_one("package", PUBLIC)
def test_the_names_of_a_package_are_those_listed_and_can_be_imported(package: str) -> None:
    module = pkgutil.resolve_name(package)
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    offered = {name for name in dir(module) if not name.startswith("_")} - modules - {"lazily"}
    assert offered == set(PUBLIC[package].split())
    for name in offered:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        getattr(module, "nothing")  # noqa: B009  # mypy would refuse the plain form


def test_light_modules_import_nothing_slow() -> None:
    slow = ("torch", "torchvision", "scipy", "sklearn", "pyarrow", "PIL", "opacus", "transformers")
    code = f"import sys, {', '.join(LIGHT)}; print(*(name for name in {slow!r} if name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert said.split() == []


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of everything that a file imports by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def test_examples_need_public_names_alone() -> None:
    examples = sorted((ROOT / "examples").glob("*.py"))
    assert examples
    for module, name in (found for path in examples for found in imported(path) if found[0].startswith("audits")):
        assert module in LOOSE or name in PUBLIC[module].split(), f"{module}.{name}"


def test_our_own_modules_import_from_where_a_name_is_defined() -> None:
    """Names that a package imports when they are asked for hide what depends on what, so they are for others only."""
    lazy = {
        (package, name)
        for package, names in PUBLIC.items()
        for name in names.split()
        if f" {name}" not in str((ROOT / package.replace(".", "/") / "__init__.py").read_text().partition("lazily(")[0])
    }
    from_a_package = re.compile(rf"\b({'|'.join(map(re.escape, PUBLIC))})\s+import\b")
    for folder in ("audits", "actors", "orchestrator", "tune_spaces"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if from_a_package.search(path.read_text()):  # parsing all files takes seconds
                taken = lazy & set(imported(path))
                assert not taken, path
