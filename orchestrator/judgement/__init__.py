"""What a result says: its findings, the controls that these stand on, its verdict, and how it stands to a gate."""
