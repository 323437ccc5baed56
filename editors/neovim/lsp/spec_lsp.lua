-- Configuration of spec-lsp for Neovim 0.11 and newer: vim.lsp.enable("spec_lsp")

-- With the whole folder as a plugin, launches have a lens that opens what SGLang will run; this file alone offers none.
local whole, plugin = pcall(require, "spec_lsp")

-- Says once what to do where the server is not installed: Neovim itself only writes a line into its log.
vim.schedule(function()
  local cmd = (vim.lsp.config.spec_lsp or {}).cmd
  if type(cmd) == "table" and vim.fn.executable(cmd[1]) == 0 then
    vim.notify_once("spec-lsp: `" .. cmd[1] .. "` is not in PATH: install it from a clone (pipx install PATH-TO-CLONE)", vim.log.levels.WARN)
  end
end)

return {
  cmd = { "spec-lsp", "server", "--stdio" },
  filetypes = {
    "sh",
    "bash",
    "zsh",
    "yaml",
    "yaml.docker-compose",
    "yaml.ghaction",
    "helm",
    "dockerfile",
    "systemd",
    "make",
    "just",
    "markdown",
    "python",
    "json",
    "jsonc",
    "procfile",
    "conf",
    "dosini",
    "groovy",
    "Jenkinsfile",
    "terraform",
    "hcl",
    "toml",
  },
  root_markers = { "spec-lsp.toml", "pyproject.toml", ".git" },
  -- Settings are those of spec-lsp.toml, in camelCase. They come before the file's.
  settings = { ["spec-lsp"] = {} },
  commands = whole and { [plugin.COMMAND] = plugin.run_lens } or nil,
  capabilities = whole and { experimental = { commands = { commands = { plugin.COMMAND } } } } or nil,
}
