"""Gradient uniqueness of the training points of a given model: nothing is trained, no attack is made."""
