"""The version of the code behind a job: what its stage's body reaches changes it, nothing else does."""

from __future__ import annotations

import ast
import functools
import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grimp
import pytest

from audits.gradients.layers.base import LAYERS
from audits.registry import Registry, modules_of
from audits.uniqueness.rankings import RANKINGS
from orchestrator.engine import keyed_jobs
from orchestrator.engine.jobs import code_version as versions
from orchestrator.engine.jobs.code_version import OURS, Source, code_version, counts, reached, source_of, statements
from orchestrator.kinds import KINDS, kind_named, open_design
from tests.cases.smallest_plans import GIVEN, SMALLEST, smallest_plan

ROOT = Path(keyed_jobs.__file__).parents[2]
WHOLE: tuple[Registry[object], ...] = (LAYERS, RANKINGS)
SILENT = ("audits/errors.py", "orchestrator/engine/plan/errors.py", "orchestrator/engine/run/console.py")


@functools.cache
def bodies() -> dict[str, str]:
    """Return stage of a kind → the module of its body."""
    return {f"{name} {stage.name}": stage.body.__module__ for name in KINDS for stage in kind_named(name).stages}


class Copy:
    """A copy of the source whose files may be edited: only edited files are read again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources: dict[str, Source] = {}
        self.known: dict[str, str] = {}  # versions of the copy as it is now, if they were asked for

    def source_of(self, name: str, tops: frozenset[str], root: Path | None = None) -> Source:
        """Stand in for ``code_version.source_of``, which reads a module once per process."""
        if name not in self.sources:
            self.sources[name] = Source(name, tops, root)
        return self.sources[name]

    @contextmanager
    def edited(self, file: str, change: Callable[[str], str]) -> Iterator[None]:
        """Hold an edit of ``file``; one that does not exist is made, and removed afterwards."""
        path, known, read = self.root / file, self.known, {**self.sources}
        text = path.read_text() if path.exists() else None
        after = change(text or "")
        assert after != text, "nothing was edited"
        try:
            path.write_text(after)
            self.forget(file, new=text is None)
            yield
        finally:
            path.unlink() if text is None else path.write_text(text)
            self.forget(file, new=text is None)
            self.known, self.sources = known, read

    def forget(self, file: str, *, new: bool) -> None:
        """Forget what was read of ``file``; of a ``new`` one also where it was sought in vain: who names it."""
        self.known = {}
        self.sources.pop(module_of(file), None)
        if new:
            package, _, stem = module_of(file).rpartition(".")
            self.sources = {name: each for name, each in self.sources.items() if not self.names(name, stem, package)}
            versions.file_of.cache_clear()

    def names(self, module: str, stem: str, package: str) -> bool:
        """Return whether ``module`` may lead to the module ``stem`` of ``package``, or to all that are in it."""
        place = self.root / module.replace(".", "/")
        text = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
        return stem in text or ("Registry(" in text and package in text)

    def version(self, *modules: str) -> str:
        """Return the version of the code that ``modules`` reach in the copy, as it is now."""
        return code_version.__wrapped__(modules, self.root)

    def versions(self) -> dict[str, str]:
        """Return the version of every stage of every kind."""
        if not self.known:
            of_body = {body: self.version(body) for body in set(bodies().values())}
            self.known = {stage: of_body[body] for stage, body in bodies().items()}
        return self.known

    def changed_by(self, file: str, change: Callable[[str], str]) -> set[str]:
        """Return the stages whose version an edit of ``file`` changes; the edit is taken back."""
        before = self.versions()
        with self.edited(file, change):
            after = self.versions()
        return {stage for stage in bodies() if before[stage] != after[stage]}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy of all packages; what a test edits, it puts back."""
    place = tmp_path_factory.mktemp("copy")
    for package in OURS:
        shutil.copytree(ROOT / package, place / package, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    return Copy(place)


@pytest.fixture
def copy(copied: Copy, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """The copy, as the code under test reads it."""
    monkeypatch.setattr(versions, "source_of", copied.source_of)
    return copied


@pytest.fixture(scope="module")
def reach() -> dict[str, set[str]]:
    """Stage → modules that its body reaches, by import-linter's graph and the registries of which all counts."""
    graph = grimp.build_graph(*OURS, cache_dir=None)
    for table in WHOLE:
        (home,) = (name for name in graph.modules if name == table_home(table))
        for module in modules_of(table.package):
            if module != home:
                graph.add_import(importer=home, imported=module)
    for name in [name for name in graph.modules if not counts(name)]:
        for importer in graph.find_modules_that_directly_import(name):
            graph.remove_import(importer=importer, imported=name)
    return {stage: {body, *graph.find_upstream_modules(body)} for stage, body in bodies().items()}


def table_home(table: Registry[object]) -> str:
    """Return the module in which a registry stands."""
    return "audits.gradients.layers.base" if table is LAYERS else "audits.uniqueness.rankings"


def module_of(file: str) -> str:
    """Return the name of the module in a file."""
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def files_of(root: Path, *places: str) -> list[str]:
    """Return the Python files below ``places``, sorted."""
    found = [each for place in places for each in ((root / place).rglob("*.py") if (root / place).is_dir() else ())]
    return sorted(path.relative_to(root).as_posix() for path in found)


def functions_of(root: Path, file: str) -> list[tuple[str, int]]:
    """Return file and line of every function in ``file`` whose body has lines of its own, those in functions too."""
    nodes = ast.walk(ast.parse((root / file).read_text()))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(file, node.lineno) for node in functions if node.body[0].lineno > node.lineno]


def planted(*lines: int) -> Callable[[str], str]:
    """Return an edit that adds a statement to the body of each function at ``lines``, behind its docstring."""

    def edit(text: str) -> str:
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        bodies = [node.body[0] for node in nodes if node.lineno in lines]
        assert len(bodies) == len(lines)
        edited = text.splitlines(keepends=True)
        for place, column in sorted(((place_of(first), first.col_offset) for first in bodies), reverse=True):
            edited.insert(place, f"{' ' * column}planted = 1\n")
        return "".join(edited)

    return edit


def place_of(first: ast.stmt) -> int:
    """Return the number of lines before a statement that is put in front of ``first``, or behind a docstring."""
    if versions.is_docstring(first):
        return first.end_lineno or 0
    return min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))]) - 1


def test_the_reach_is_that_of_an_independent_graph_of_imports(reach: dict[str, set[str]]) -> None:
    for stage, body in bodies().items():
        assert set(reached((body,))) == reach[stage], stage


@pytest.mark.parametrize(("drawn", "a_stage"), [(4, 0), pytest.param(60, 8, marks=pytest.mark.long)])
def test_an_edit_of_any_function_changes_exactly_the_stages_whose_body_reaches_it(
    copy: Copy, reach: dict[str, set[str]], drawn: int, a_stage: int
) -> None:
    """Functions are drawn from files of all code, and from those that each body reaches."""
    draw, files, edited = random.Random(0), files_of(copy.root, *OURS), list[tuple[str, int]]()
    for stage, number in {"": drawn, **dict.fromkeys(bodies(), a_stage)}.items():
        some = [file for file in files if not stage or module_of(file) in reach[stage]] if number else []
        found = (functions_of(copy.root, file) for file in draw.sample(some, len(some)))
        edited += [draw.choice(own) for own in itertools.islice(filter(None, found), number)]
    assert len(edited) == drawn + a_stage * len(bodies())
    for file, line in sorted(set(edited)):
        wanted = {stage for stage in bodies() if module_of(file) in reach[stage]}
        assert copy.changed_by(file, planted(line)) == wanted, (file, line)


def test_how_a_model_is_built_decides_all_that_asks_models(copy: Copy) -> None:
    """In versions of old, ``build`` stood in a file that a list of sources had left out."""
    tree = ast.parse((copy.root / "orchestrator/tmia/design.py").read_text())
    (build,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "build")
    changed = copy.changed_by("orchestrator/tmia/design.py", planted(build.lineno))
    assert changed == {f"tmia {stage}" for stage in ("given", "train", "select", "query", "look", "score")}


def test_what_words_draws_and_shows_decides_nothing(copy: Copy) -> None:
    files = [*SILENT, *files_of(copy.root, "orchestrator/report")]
    lines = {file: [line for _, line in functions_of(copy.root, file)] for file in files}
    assert sum(map(len, lines.values())) > 50
    before = copy.versions()
    with ExitStack() as edits:
        for file in filter(lines.get, files):
            edits.enter_context(copy.edited(file, planted(*lines[file])))
        assert copy.versions() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("The one training loop", "Our training loop"),
        lambda text: text.replace("in a fresh random order", "in some random order"),
        lambda text: f"# a comment\n{text}",
        lambda text: text.replace("return entropy\n", "return (\n        entropy\n    )\n"),
        lambda text: f"\n\n{text}\n\n\n",
    ],
    ids=["module docstring", "docstring", "comment", "formatting", "blank lines"],
)
def test_comments_docstrings_and_formatting_change_nothing(copy: Copy, change: Callable[[str], str]) -> None:
    assert copy.changed_by("audits/training/loop.py", change) == set()


def test_every_job_names_the_body_of_its_stage_and_its_own_components(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_jobs, "code_version", lambda modules, root=None: ", ".join(modules))
    named: dict[str, set[str]] = {}
    for name in SMALLEST | GIVEN:
        plan = smallest_plan(name, tmp_path)
        design = open_design(plan)
        jobs = [*(design.first_jobs() or design.jobs())]
        if plan.kind == "apollo" and plan.target is None and not design.first_jobs():
            jobs += design.rehearsal("gradient_ascent", "apollo")
        for job in jobs:
            body, *components = job.document["code"].split(", ")
            assert body == kind_named(plan.kind).stage(job.stage).body.__module__
            named.setdefault(f"{plan.kind} {job.stage}", set()).update(components)
    assert named.keys() == bodies().keys()
    of_no_model = ("apollo appraise", "apollo score", "tmia score", "gnq-target given", "gnq-target score")
    assert all("audits.models.mlp" in named[stage] for stage in bodies() if stage not in of_no_model)
    assert {"audits.unlearning.gradient_ascent", "audits.unlearning.retrain"} <= named["apollo unlearn"]
    assert {"audits.apollo.evidence.adversarial", "audits.apollo.evidence.yoqo"} <= named["apollo search"]
    assert {"audits.apollo.attacks.apollo", "audits.apollo.attacks.lira"} <= named["apollo score"]
    assert {"audits.tmia.selectors.kmeans", "audits.tmia.selectors.none"} <= named["tmia select"]
    assert {"audits.tmia.attacks.tmia", "audits.tmia.attacks.yeom"} <= named["tmia score"]
    assert {"audits.gnq.attacks.lira", "audits.gnq.attacks.white_box"} <= named["gnq score"]
    assert "audits.training.engines.fast" in named["gnq defend"]


@pytest.mark.parametrize(
    ("component", "file"),
    [
        ("audits.models.mlp", "audits/models/mlp.py"),
        ("audits.unlearning.scrub", "audits/unlearning/scrub.py"),
        ("audits.apollo.evidence.adversarial", "audits/apollo/evidence/search.py"),
        ("audits.apollo.attacks.lira", "audits/signals/likelihood_ratio.py"),
        ("audits.tmia.selectors.kmeans", "audits/tmia/anomalies.py"),
        ("audits.training.engines.fast", "audits/gradients/layers/conv.py"),
        ("audits.training.engines.opacus", "audits/training/engines/opacus.py"),
    ],
)
def test_a_component_decides_only_the_jobs_that_name_it(copy: Copy, component: str, file: str) -> None:
    body = "orchestrator.apollo.stages.ranking"
    before = copy.version(body), copy.version(body, component)
    with copy.edited(file, lambda text: f"{text}\nNEW = 1\n"):
        after = copy.version(body), copy.version(body, component)
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_a_new_component_decides_nothing_unless_all_of_its_table_count(copy: Copy) -> None:
    before = copy.versions()
    with ExitStack() as more:
        for table in ("apollo/attacks", "models", "tmia/selectors", "training/engines"):
            more.enter_context(copy.edited(f"audits/{table}/newest.py", lambda _: "NEW = 1\n"))
        assert copy.versions() == before
    changed = copy.changed_by("audits/gradients/layers/newest.py", lambda _: "NEW = 1\n")
    assert changed == {stage for stage, body in bodies().items() if "audits.gradients.layers.base" in reached((body,))}
    assert "gnq train" in changed and "apollo trace" not in changed


def test_a_module_that_a_stage_only_imports_decides_it_too(copy: Copy) -> None:
    stages = {stage for stage, body in bodies().items() if "audits.training.loop" in reached((body,))}
    assert "apollo train" in stages
    with (
        copy.edited("audits/shapes.py", lambda _: "SIDES = 4\n"),
        copy.edited("audits/training/loop.py", lambda text: f"{text}\ndef late():\n    import audits.shapes\n"),
    ):
        assert copy.changed_by("audits/shapes.py", lambda _: "SIDES = 5\n") == stages


def slow_text(node: object) -> str:
    """Return what ``text_of`` does, by the definition: all fields that are not empty, in their order."""
    if isinstance(node, list):
        return "[" + ",".join(slow_text(each) for each in node if not versions.is_docstring(each)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    there = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    fields = [f"{name}={slow_text(value)}" for name, value in there if name != "type_ignores"]
    return f"{type(node).__name__}({','.join(fields)})"


ODD = """
def f(a, /, *b: "int", c=1j, **d):
    "docstring"
    global x
    try:
        match a:
            case {"k": [1, *_]} | None: import audits.seeds
            case _: pass
    except* (OSError, ValueError) as error:
        "alone"
    else:
        with open(b"\\xff") as g: from audits import errors
    finally:
        while (y := True): import audits.registry
        else: from audits.models import *
    return lambda: (yield f"{a!r:>{c}}"), [z async for z in b if z], ..., -1.5, "é\\ud800"
class C:
    class D:
        import audits.owners
"""


def test_a_tree_is_told_and_searched_as_by_the_definition() -> None:
    texts = [ODD, *((ROOT / file).read_text() for file in files_of(ROOT, "audits/models", "orchestrator/engine/jobs"))]
    tops = frozenset(OURS)
    for text in texts:
        tree = ast.parse(text)
        assert versions.text_of(tree) == slow_text(tree)
        found = [{*versions.imported(nodes, "audits", tops, None)} for nodes in (ast.walk(tree), statements(tree))]
        assert found[0] == found[1] or versions.REGISTRY in slow_text(tree)
    assert {f"audits.{name}" for name in ("seeds", "errors", "registry", "models", "owners")} <= {
        *versions.imported(statements(ast.parse(ODD)), "audits", tops, None)
    }


def test_a_module_without_a_source_is_an_error(copy: Copy) -> None:
    with pytest.raises(RuntimeError, match=r"module audits\.apollo\.attacks\.nothing has no source file"):
        copy.version("audits.apollo.attacks.nothing")


def test_a_name_that_a_package_hands_on_lazily_is_refused(copy: Copy) -> None:
    body, home = bodies()["apollo search"], "from audits.queries.oracles import"
    said = r"^from audits\.queries import label_oracle: .* import it from audits\.queries\.oracles$"
    with (
        copy.edited(
            "orchestrator/apollo/stages/searching.py", lambda text: text.replace(home, "from audits.queries import")
        ),
        pytest.raises(RuntimeError, match=said),
    ):
        copy.version(body)


def test_a_module_is_no_name_that_is_handed_on(copy: Copy) -> None:
    more = "from audits.queries import start_points\n"
    with copy.edited("orchestrator/apollo/stages/searching.py", lambda text: text + more):
        assert "audits.queries.start_points" in reached((bodies()["apollo search"],), copy.root)


def test_no_module_of_ours_takes_a_name_that_is_handed_on_lazily() -> None:
    tops, texts = frozenset(OURS), {file: (ROOT / file).read_text() for file in files_of(ROOT, *OURS)}
    packages = [module_of(file) for file, text in texts.items() if file.endswith("__init__.py") and "lazily(" in text]
    assert packages
    asking = [f"from {package} import" for package in packages]
    for file, text in texts.items():
        if "from ." in text or any(each in text for each in asking):
            source_of(module_of(file), tops)  # raises


def test_packages_that_lie_apart_give_the_same_version(copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the workers of a cluster every package is shipped into a folder of its own."""
    some = {stage: body for stage, body in bodies().items() if stage.startswith("mia ")}
    here = {stage: code_version((body,)) for stage, body in some.items()}
    apart = {package: copied.root.parent / f"of-{package}" / package for package in OURS}
    for package, place in apart.items():
        shutil.copytree(copied.root / package, place)
    monkeypatch.setattr(versions, "package_folder", apart.__getitem__)
    caches = (versions.file_of, versions.lazy_homes, versions.source_of, code_version)
    for cache in caches:
        cache.cache_clear()
    there = {stage: code_version((body,)) for stage, body in some.items()}
    for cache in caches:
        cache.cache_clear()
    assert there == here


def test_code_of_ones_own_counts_as_ours_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_kind").mkdir()
    (tmp_path / "own_kind" / "__init__.py").write_text("")
    (tmp_path / "own_kind" / "body.py").write_text(
        "from audits.training.loop import logits\nfrom own_kind import step\n"
    )
    (tmp_path / "own_kind" / "step.py").write_text("A = 1\n")
    (tmp_path / "own_file.py").write_text("B = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = reached(("own_kind.body", "own_file"))
    assert {"own_file", "own_kind.body", "own_kind.step", "audits.training.loop"} <= set(found)
