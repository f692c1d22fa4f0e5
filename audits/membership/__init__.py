"""TMIA: membership inference against transfer learning, from labels alone.

Source: Chen, Shangguan, Zhang, Zheng, Zheng, Zhang, Journal on Communications 42(10), 2021.

Contrast models never saw the points asked about (candidates). A candidate's statistic under the target is ranked among
those under the contrast models; the rank is a p-value of "not a member". One step of the method a file; nothing here is
imported by the package itself.
"""
