"""Layouts of scores files: plain tables, our own runs, and what other tools write. One file each."""
