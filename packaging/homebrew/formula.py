"""Writes the Homebrew formula of a published sdist: `python packaging/homebrew/formula.py dist/spec_lsp-0.1.0.tar.gz URL > spec-lsp.rb`.

`brew update-python-resources spec-lsp` then fills in what it depends on. There is no formula before there is a published file: it names
an address and a checksum.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

FORMULA = """\
class SpecLsp < Formula
  include Language::Python::Virtualenv

  desc "Tells whether SGLang will accept a launch, before a GPU is paid for"
  homepage "https://example.com/spec-lsp"
  url "{url}"
  sha256 "{sha256}"
  license "Apache-2.0"

  depends_on "libyaml"
  depends_on "python@3.13"

  def install
    virtualenv_install_with_resources
  end

  test do
    (testpath/"launch.sh").write "sglang serve m --no-such-flag\\n"
    assert_match "unknown-flag", shell_output("#{{bin}}/spec-lsp check launch.sh", 1)
  end
end
"""


def formula(sdist: Path, url: str) -> str:
    """The formula of a file that stands at an address."""
    return FORMULA.format(url=url, sha256=hashlib.sha256(sdist.read_bytes()).hexdigest())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(formula(Path(sys.argv[1]), sys.argv[2]), end="")
