"""The words of seeds: another word is another draw, so that those in use stay as they are."""

from __future__ import annotations

from audits.seeds import Purpose

KEPT = """
assess | augment | bootstrap | boundary | canary label | canary noise | canary rows | candidates |
cells | contrast models | direction | dropout | exposure | features | fit | fmia | forget order |
gradient noise | hop_skip_jump | init | inversion starts | invert | judge | k-means | k-means sample
| k-means sketch | labels | membership | membership/contrast | membership/fresh | membership/pair |
membership/target | membership/test | memorised | noise votes | offline | order | pair | permutation
| permute | pools | privacy | projection | radii | random ranking | ranking | retained | retrained
twin | select | shadow | shadow rows | target | targets | teacher | train | trees | twin | twins |
unlearn | votes
"""


def test_purposes_that_have_made_numbers_keep_their_words() -> None:
    kept = [" ".join(word.split()) for word in KEPT.split("|")]
    assert len(kept) > 50 and set(kept) <= {str(purpose) for purpose in Purpose}


def test_no_two_purposes_share_a_word() -> None:
    assert len(Purpose.__members__) == len(set(map(str, Purpose)))
