"""The audit ``tmia``: membership inference against transfer learning, from a plan to its scores."""
