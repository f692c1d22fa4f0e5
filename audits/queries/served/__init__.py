"""Models behind an HTTP endpoint: asked in batches, with patience, each answer recorded and replayed."""
