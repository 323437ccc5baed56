# spec-lsp from this checkout: nix-build packaging/nix/package.nix
{ pkgs ? import <nixpkgs> { } }:
let
  python = pkgs.python3Packages;
in
python.buildPythonApplication {
  pname = "spec-lsp";
  version = "0.1.0";
  pyproject = true;
  src = pkgs.lib.cleanSource ../..;
  build-system = [ python.hatchling ];
  dependencies = [
    python.pygls
    python.lsprotocol
    python.websockets
    python.pyyaml
    python.tree-sitter
    python.tree-sitter-bash
  ];
  pythonImportsCheck = [ "spec_lsp" ];
  meta = {
    description = "Tells whether SGLang will accept a launch, before a GPU is paid for";
    license = pkgs.lib.licenses.asl20;
    mainProgram = "spec-lsp";
  };
}
