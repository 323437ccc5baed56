"""SGLang's own argument resolution, step by step: what it adjusts, what it refuses, in its order."""
