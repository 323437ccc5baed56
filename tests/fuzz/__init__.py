"""Laws that hold whatever is read, tried on the corpus changed at random: `python -m tests.fuzz --help`."""
