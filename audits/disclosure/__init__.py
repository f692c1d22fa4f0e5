"""Disclosure: how much a model trained by gradient descent could give away about each point of its training pool.

Source: Abdelghafar, Aliakbarpour, Jermaine, arXiv 2510.10902. Gradient uniqueness (GNQ) of a point is how badly its
gradient is made up of the other points' gradients. Here all N values come exactly from one factorisation of the N × N
Gram matrix of the gradients, where the definition takes one pseudo-inverse a point.
"""

from audits.disclosure.scores import gradient_uniqueness
from audits.disclosure.uniqueness import uniqueness_from_gram

__all__ = ["gradient_uniqueness", "uniqueness_from_gram"]
