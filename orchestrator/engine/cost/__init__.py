"""The cost of a plan, estimated before anything runs."""
