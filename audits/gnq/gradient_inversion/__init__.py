"""Gradient inversion: inputs found from the gradient that they gave, by an observer of training.

Access: the weights at a step (white box) and the gradient sent from there, of one point or the mean over a batch, as a
server of federated learning has. A published model alone gives no such gradient, so this is an upper end of what is
disclosed along training, not an attack on the published model.
"""
