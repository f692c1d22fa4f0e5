"""Components of users' own: code that a plan names, packages that offer some, and whether they may run."""
