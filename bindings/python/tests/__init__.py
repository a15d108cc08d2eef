"""The package, from outside: by what its users call."""
