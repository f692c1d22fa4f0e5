"""Plans, keys, artefacts and runs of any kind of audit; knows none of them."""
