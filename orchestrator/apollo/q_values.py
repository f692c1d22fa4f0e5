"""The column ``q_value`` of the whole scores table: it needs the candidates of all shadow sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.statistics.discoveries import family_q_values

if TYPE_CHECKING:
    import pyarrow as pa

FAMILY = ("setting", "unlearner", "attack", "group", "p_value")


def with_q_values(table: pa.Table) -> pa.Table:
    """Return the table with ``q_value`` after ``p_value``; null for retained points; tables without p-values as is."""
    import pyarrow as pa

    if "p_value" not in table.column_names:
        return table
    found = family_q_values({name: table[name].to_numpy(zero_copy_only=False) for name in FAMILY})
    place = table.column_names.index("p_value") + 1
    return table.add_column(place, "q_value", pa.array(found, pa.float64(), from_pandas=True))
