-- Drives a real Neovim: nvim --headless -i NONE -n -S drive.lua
-- Reads what to do from the environment; writes one line of JSON for each step to standard output; exit 0 pass, 1 fail.
local function say(step, value)
  io.stdout:write(vim.json.encode({ step = step, value = value == nil and vim.NIL or value }), "\n")
end
local function wait(what, condition)
  if not vim.wait(tonumber(vim.env.PATIENCE_MS), condition, 20) then
    error("waited in vain for " .. what)
  end
end
local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

local function found(buf)
  for _, d in ipairs(vim.diagnostic.get(buf)) do
    if d.code == vim.env.RULE then
      return d
    end
  end
end

local steps = {}

function steps.attach()
  vim.cmd.edit(vim.fn.fnameescape(vim.env.SCRIPT))
  wait("the client to attach", function()
    local client = vim.lsp.get_clients({ bufnr = 0, name = "spec_lsp" })[1]
    return client and client.initialized
  end)
  local client = vim.lsp.get_clients({ bufnr = 0, name = "spec_lsp" })[1]
  say("attached", { name = client.server_info.name, encoding = client.offset_encoding, root = client.root_dir })
end

function steps.diagnostics()
  wait("diagnostics", function() return found(0) ~= nil end)
  local d = found(0)
  local text = vim.api.nvim_buf_get_text(0, d.lnum, d.col, d.end_lnum, d.end_col, {})
  say("diagnostic", { code = d.code, severity = d.severity, message = d.message, text = table.concat(text, "\n") })
  vim.api.nvim_win_set_cursor(0, { d.lnum + 1, d.col })
end

function steps.hover()
  vim.lsp.buf.hover()
  local float
  wait("the hover window", function()
    for _, w in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(w).relative ~= "" then
        float = w
        return true
      end
    end
  end)
  say("hover", table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(float), 0, -1, false), "\n"))
  vim.api.nvim_win_close(float, true)
end

function steps.fix()
  local menu = {}
  vim.ui.select = function(items, options, choose)
    for _, item in ipairs(items) do
      table.insert(menu, options.format_item(item))
    end
    choose(items[1], 1)
  end
  local before = table.concat(lines(), "\n")
  vim.api.nvim_feedkeys(vim.keycode("gra"), "mx", false)
  wait("the fix", function() return table.concat(lines(), "\n") ~= before end)
  say("menu", menu)
  wait("the diagnostic to go", function() return found(0) == nil end)
end

function steps.fix_all()
  local before = table.concat(lines(), "\n")
  vim.lsp.buf.code_action({ context = { only = { "source.fixAll.spec-lsp" }, diagnostics = {} }, apply = true })
  wait("fix-all", function() return table.concat(lines(), "\n") ~= before end)
end

function steps.write()
  vim.cmd.write()
  say("written", table.concat(lines(), "\n"))
end

function steps.resolved()
  vim.cmd.SpecLspResolved()
  wait("the resolved configuration", function() return vim.fn.bufname() == "spec-lsp://resolved" and #lines() > 1 end)
  say("resolved", table.concat(lines(), "\n"))
end

function steps.health()
  vim.cmd.checkhealth("spec_lsp")
  say("health", table.concat(lines(), "\n"))
end

local ok, problem = xpcall(function()
  for step in vim.gsplit(vim.env.STEPS, " ") do
    steps[step]()
  end
end, debug.traceback)
if not ok then
  say("failed", problem)
end
vim.cmd(ok and "qall!" or "cquit 1")
