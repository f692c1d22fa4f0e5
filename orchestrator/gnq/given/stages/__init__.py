"""Stage bodies of a GNQ audit of a given model, a file each."""
