-- :checkhealth spec_lsp
local M = {}

local function version(command)
  local ok, done = pcall(function()
    return vim.system({ command, "--version" }, { text = true }):wait(10000)
  end)
  return ok and done.code == 0 and vim.trim(done.stdout) or nil
end

function M.check()
  vim.health.start("spec-lsp")
  if vim.fn.has("nvim-0.11") == 0 then
    vim.health.error("Neovim 0.11 or newer is needed", { "On older ones, start the server with vim.lsp.start()." })
    return
  end
  local config = vim.lsp.config.spec_lsp
  if not config then
    vim.health.error("No configuration named spec_lsp", { "Put editors/neovim into 'runtimepath' (see its README)." })
    return
  end
  local command = type(config.cmd) == "table" and config.cmd[1] or "spec-lsp"
  if vim.fn.executable(command) == 0 then
    vim.health.error("`" .. command .. "` is not in PATH", { "pipx install PATH-TO-CLONE", "or set cmd in vim.lsp.config('spec_lsp', …)" })
    return
  end
  vim.health.ok((version(command) or command) .. " (" .. vim.fn.exepath(command) .. ")")
  if vim.lsp.is_enabled and not vim.lsp.is_enabled("spec_lsp") then
    vim.health.warn("The server is not enabled", { 'Add vim.lsp.enable("spec_lsp") to your init.lua.' })
  else
    vim.health.ok("The server is enabled for " .. table.concat(config.filetypes, ", "))
  end
  local clients = vim.lsp.get_clients({ name = "spec_lsp" })
  for _, client in ipairs(clients) do
    vim.health.info(("running: client %d, root %s, %s positions"):format(client.id, client.root_dir or "none", client.offset_encoding))
  end
  if #clients == 0 then
    vim.health.info("not running: it starts with the first file of those kinds that you open")
  end
end

return M
