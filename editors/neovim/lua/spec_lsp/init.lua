-- Shows the configuration that SGLang will run a launch with, in a window of its own, up to date while you type.
local M = {}

M.COMMAND = "spec-lsp.showResolved"
local NAME = "spec-lsp://resolved"

local function buffer()
  local buf = vim.fn.bufnr(NAME)
  if buf == -1 then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, NAME)
    vim.bo[buf].filetype = "markdown"
  end
  return buf
end

local function write(markdown)
  local buf = buffer()
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(vim.trim(markdown), "\n"))
  vim.bo[buf].modifiable = false
  return buf
end

local function open(buf)
  local window = vim.fn.bufwinid(buf)
  if window == -1 then
    vim.cmd("botright vertical sbuffer " .. buf)
    vim.wo.wrap = false
  else
    vim.api.nvim_set_current_win(window)
  end
end

local function ask(client, source, line, use)
  local params = { command = M.COMMAND, arguments = { vim.uri_from_bufnr(source), line } }
  client:request("workspace/executeCommand", params, function(err, markdown)
    use(err, markdown ~= vim.NIL and markdown or nil)
  end, source)
end

-- As long as the window is open it shows the launch that the cursor is at.
local function follow(client, source)
  local group = vim.api.nvim_create_augroup("spec_lsp_resolved", {})
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "CursorHold" }, {
    group = group,
    buffer = source,
    callback = function()
      if vim.fn.bufwinid(NAME) == -1 or client:is_stopped() then
        return true
      end
      ask(client, source, vim.api.nvim_win_get_cursor(0)[1] - 1, function(_, markdown)
        if markdown then
          write(markdown)
        end
      end)
    end,
  })
end

local function show(client, source, line)
  ask(client, source, line, function(err, markdown)
    if not markdown then
      vim.notify(err and err.message or "no SGLang launch in this file", vim.log.levels.WARN)
      return
    end
    open(write(markdown))
    follow(client, source)
  end)
end

-- :SpecLspResolved
function M.show_at_cursor()
  local client = vim.lsp.get_clients({ bufnr = 0, name = "spec_lsp" })[1]
  if not client then
    vim.notify("spec-lsp is not running for this file (:checkhealth spec_lsp)", vim.log.levels.WARN)
    return
  end
  show(client, vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1)
end

-- What the lens on a launch does.
function M.run_lens(command, context)
  show(assert(vim.lsp.get_client_by_id(context.client_id)), context.bufnr, command.arguments[2])
end

return M
