"""Run by hand: compare binding with the real argparse on random command lines.

python -m tests.catalog.compare_with_argparse [COUNT] [RELEASE …]
"""

from __future__ import annotations

import random
import sys

from .parsers import difference, random_argv

RELEASES = ("0.4.10.post2", "0.5.3.post3", "0.5.9", "0.5.18", "0.5.23")


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    differences = 0
    for release in sys.argv[2:] or RELEASES:
        rng = random.Random(f"{release} {count}")
        for _ in range(count):
            argv = random_argv(rng, release)
            found = difference(release, argv)
            if found is not None:
                differences += 1
                if differences <= 20:
                    print(release, argv, found)
        print(f"{release}: {count} command lines, {differences} differences so far", flush=True)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
