"""Apollo (arXiv 2506.09923): does a model that should have forgotten points still give them away, by labels alone?"""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.apollo.attacks.base": ("ATTACKS", "Attack", "Finding"),
        "audits.apollo.attacks.budget": ("at_budget",),
        "audits.apollo.attacks.heat": ("heat_map",),
        "audits.apollo.attacks.three_way": ("groups_of",),
        "audits.apollo.design.partition": ("Partition", "make_partition"),
        "audits.apollo.design.population": ("Candidates", "Member"),
        "audits.apollo.design.split": ("ForgetClasses", "ForgetIds", "Split"),
        "audits.apollo.evidence.adversarial": ("drawn_by",),
        "audits.apollo.evidence.base": ("KINDS", "Case", "Group", "Kind", "Questions", "in_order"),
        "audits.apollo.evidence.parts": ("Evidence", "Part", "Posteriors", "Walks"),
        "audits.apollo.evidence.settings": ("SearchSettings",),
    },
)
