-- Configuration of spec-lsp for Neovim 0.11 and newer: vim.lsp.enable("spec_lsp")
return {
  cmd = { "spec-lsp", "server", "--stdio" },
  filetypes = { "sh", "bash", "zsh", "yaml", "yaml.docker-compose", "dockerfile", "markdown" },
  root_markers = { "spec-lsp.toml", "pyproject.toml", ".git" },
  -- Settings are those of spec-lsp.toml, in camelCase. They come before the file's.
  settings = { ["spec-lsp"] = {} },
}
