"""Names of the components of an Apollo audit, as it reports them."""

from __future__ import annotations

from orchestrator.judgement.wording import capital
from orchestrator.report import words as shared

NAMES = {
    "apollo": "Apollo",
    "apollo_offline": "Apollo offline",
    "apollo_no_fit": "Apollo, no fit",
    "apollo_under": "Apollo UNDER",
    "apollo_over": "Apollo OVER",
    "apollo_plus": "Apollo plus",
    "apollo_ladder": "Apollo ladder",
    "boundary_distance": "boundary distance",
    "yoqo": "YOQO",
    "oslo": "OSLO",
    "u_lira": "U-LiRA",
    "u_lira_per_point": "U-LiRA, per point",
    "u_lira_raw_logit": "U-LiRA, raw logit",
    "u_mia": "U-MIA",
    "u_mia_shadow": "U-MIA, shadow",
    "u_mia_oracle": "U-MIA, oracle",
    "ruli": "RULI",
    "bad_teacher": "bad teacher",
    "salun": "SalUn",
    "scrub": "SCRUB",
    "sfr_on": "SFR-on",
    "identity": "identity (control)",
    "retrain": "retrain (control)",
}


def words(name: str) -> str:
    """Return a component's name as the report writes it."""
    return shared.words(name, NAMES)


def heading(name: str) -> str:
    """Return a component's name with a capital, without the word control: for headings and axis titles."""
    return capital(words(name).removesuffix(" (control)"))
