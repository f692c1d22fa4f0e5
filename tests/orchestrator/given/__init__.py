"""Given models in every form, audited by a kind that is as small as one can be."""
