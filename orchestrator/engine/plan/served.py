"""The section ``target.served`` of a plan: what a served model gives, and how it is asked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.engine.plan.addresses import Address, folder_at
from orchestrator.engine.plan.sections import Positive, Section

Gives = Literal["labels", "probabilities", "log_probabilities", "logits"]
Text = Annotated[str, Field(min_length=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
READ = ("gives", "class_names", "decimals")
"""The fields that say how answers read; the others say how a server is asked."""
NOT_DECIDING = (
    "token_env",
    "token_header",
    "ca_file",
    "plain",
    "timeout",
    "requests_per_second",
    "queries_per_second",
    "patience",
    "record",
)
"""The fields that no answer depends on."""


class Served(Section):
    """How the answers of a target read, and how its server is asked.

    ``gives``: labels, probabilities, log_probabilities or logits; ``class_names``: the server's names of the classes,
    in the order of the data set's, or name → index; ``decimals``: to which probabilities are rounded.

    ``form``: of an MLflow scoring server, inputs (the default), instances or dataframe_split (with ``columns``);
    ``template``: the request of any other, with "{inputs}" or "{input}" in it; ``item``: an input within; ``answers``:
    the path to the answers; ``encoding``: lists, flat or png (with ``value_range``). ``identity``: the name of the
    model, the address if left out; give another one when another model is served there. ``token_env``: the variable
    that holds a token, for ``token_header``; ``ca_file``: certificates to trust; ``plain``: allow http to another
    machine. ``timeout`` of a request and ``patience`` with a silent server in seconds; ``batch``: inputs a request.
    ``record``: the folder of the answers, ``answers`` in the store if left out.
    """

    gives: Gives
    class_names: tuple[str, ...] | dict[str, int] | None = None
    decimals: Positive | None = None
    form: Literal["inputs", "instances", "dataframe_split"] | None = None
    columns: tuple[str, ...] | None = None
    """Names of the columns of dataframe_split."""
    template: Any = None
    item: Any = "{input}"
    answers: Text | None = None
    encoding: Literal["lists", "flat", "png"] | None = None
    value_range: tuple[float, float] | None = None
    """Smallest and largest input value, which become 0 and 255 of a PNG."""
    identity: str = ""
    token_env: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    token_header: Text = "Authorization"
    """The header that carries the token."""
    ca_file: str = ""
    plain: bool = False
    timeout: Rate = 30.0
    """Seconds for a request."""
    batch: Positive = 1024
    requests_per_second: Rate | None = None
    """Limit of requests, null for none."""
    queries_per_second: Rate | None = None
    """Limit of inputs, null for none."""
    patience: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0
    """Seconds with a silent server before the run ends."""
    record: Annotated[Text | None, Address(writes=folder_at)] = None

    @property
    def about_asking(self) -> list[str]:
        """The fields given that only a server's address makes use of."""
        fields = type(self).model_fields
        return [name for name in fields if name not in READ and getattr(self, name) != fields[name].default]
