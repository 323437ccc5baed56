"""YAML files: manifests and other files that hold commands, and SGLang's own `--config` files. `reader` reads them."""
