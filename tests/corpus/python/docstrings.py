"""Module.

```bash
python -m sglang.launch_server --model-path m \\
  --tp 2
```
"""
import os
class A:
    """Usage::

        python -m sglang.launch_server --model-path c --tp 4

    .. code-block:: bash

        sglang serve d --tp 2
    """
    def f(self):
        r"""
        Example:
            ```console
            $ sglang serve e --tp 2
            ```
        Not: python -m sglang.launch_server --model-path no

            python -m sglang.launch_server --model-path indented
        """
HELP = """
```bash
sglang serve nope
```
"""
