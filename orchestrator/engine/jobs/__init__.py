"""Jobs, their keys, and the version of the code that decides them."""
