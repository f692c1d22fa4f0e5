"""The trade of a sweep of defences: numbers per target beside their slow forms, the figure, the table."""

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.roc import auc
from orchestrator.apollo.page.front import trade_figure, trade_grid
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.front import front_of, parts_of
from orchestrator.apollo.result.rows import UtilityRow
from orchestrator.report.rows import write_row
from tests.cases.apollo_result import score_table, settings, write_run

TRADE = ("scrub.apollo.auc", "scrub.utility.test_accuracy")
NAMES = [entry["setting"] for entry in settings(True)][:4]
ACCURACY = dict(zip(NAMES, (0.80, 0.78, 0.74, 0.79), strict=True))


def utility(targets=3, unlearner="scrub"):
    return {
        name: [
            UtilityRow(
                unlearner=unlearner,
                target=target,
                retain_accuracy=1.0,
                forget_accuracy=1.0,
                test_accuracy=accuracy + 0.004 * target,
                flag="",
            )
            for target in range(targets)
        ]
        for name, accuracy in ACCURACY.items()
    }


@pytest.fixture(scope="module")
def columns():
    table = score_table(NAMES, 3, 30, 0)
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}


@pytest.fixture(scope="module")
def front(columns):
    return front_of(TRADE, columns, utility(), level=0.95, draws=400, seed=0)


def test_both_numbers_are_means_over_targets_and_the_front_is_of_them(columns, front):
    own = (columns["unlearner"] == "scrub") & (columns["attack"] == "apollo")
    values = {}
    for name in NAMES:
        of_setting = own & (columns["setting"] == name)
        rows = [of_setting & (columns["target"] == target) for target in range(3)]
        values[name] = np.mean([auc(columns["score"][each], columns["group"][each] == "forget") for each in rows])
    assert {row.setting: row.auc.value for row in front.settings} == pytest.approx(values)
    assert {row.setting: row.accuracy.value for row in front.settings} == pytest.approx(
        {name: value + 0.004 for name, value in ACCURACY.items()}
    )
    unbeaten = {
        name
        for name in NAMES
        if not any(values[rival] <= values[name] and ACCURACY[rival] > ACCURACY[name] for rival in NAMES)
    }
    assert {row.setting for row in front.settings if row.on_front} == unbeaten and len(unbeaten) > 1
    assert all(row.accuracy.low < row.accuracy.value < row.accuracy.high for row in front.settings)
    assert next(row.share for row in front.settings if row.setting == NAMES[0]) == 1.0, "the most accurate always is"


def test_an_auc_below_one_half_protects_no_better_than_one_half(columns):
    worst = np.where(columns["group"] == "forget", -1.0, 0.0)
    below = columns | {"score": np.where(columns["setting"] == NAMES[0], -columns["score"], worst)}
    told = front_of(TRADE, below, utility(), level=0.95, draws=200, seed=0)
    assert all(row.auc.value < 0.5 for row in told.settings)
    assert [row.setting for row in told.settings if row.on_front] == [NAMES[0]], "the most accurate"
    assert [row.share for row in told.settings] == [1.0, 0.0, 0.0, 0.0]


def test_settings_without_both_numbers_for_the_same_targets_are_left_out(columns):
    short = utility() | {NAMES[1]: utility(2)[NAMES[1]]}
    told = front_of(TRADE, columns, short, level=0.95, draws=20, seed=0)
    assert NAMES[1] not in {row.setting for row in told.settings} and len(told.settings) == 3
    assert front_of(TRADE, columns, utility(unlearner="finetune"), level=0.95, draws=20, seed=0) is None


@pytest.mark.parametrize("trade", [("scrub.auc", TRADE[1]), (TRADE[0], "ssd.utility.test_accuracy"), TRADE[::-1]])
def test_a_trade_that_cannot_be_told_is_refused(trade):
    with pytest.raises(BadInput, match=r"METHOD\.ATTACK\.auc"):
        parts_of(trade)


def test_the_page_shows_the_front_with_its_controls(front, tmp_path):
    document = write_run(tmp_path, sweep=True, targets=3, points=70)
    assert trade_grid(ApolloRun.of(document)) is None and trade_figure(ApolloRun.of(document)) is None
    run = ApolloRun.of(document | {"front": write_row(front)})
    table = trade_grid(run)
    assert [str(line[0]) for line in table.lines] == sorted(NAMES, key=lambda name: -ACCURACY[name])
    bold = {str(line[0]) for line in table.lines if line[0].tone}
    assert bold == {row.setting for row in front.settings if row.on_front}
    assert [column.name for column in table.columns][-2:] == ["AUC, identity (control)", "AUC, retrain (control)"]
    figure = trade_figure(run)
    (legend,) = figure.legends
    assert [text.get_text().partition("  ")[2] for text in legend.get_texts()] == [
        str(line[0]) for line in table.lines if line[0].tone
    ]
