"""Engines of DP-SGD, one file each: how gradients of single points are bounded and summed."""
