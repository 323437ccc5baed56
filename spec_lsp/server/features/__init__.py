"""One module for each thing the protocol offers. Each has `register(ls)`, which returns the capabilities it adds."""
