"""The stage bodies of the toy audit."""
