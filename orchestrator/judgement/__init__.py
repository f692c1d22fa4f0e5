"""The judgement of a result: its findings, the controls that these stand on, its verdict, and its release gate."""
