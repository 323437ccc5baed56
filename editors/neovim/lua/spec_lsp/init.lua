-- Shows the configuration that SGLang will run a launch with, in a window of its own, up to date while you type.
local M = {}

M.COMMAND = "spec-lsp.showResolved"
local RULE_PAGE = "spec-lsp.rulePage"
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


local function open(buf)
  local window = vim.fn.bufwinid(buf)
  if window == -1 then
    vim.cmd("botright vertical sbuffer " .. buf)
    vim.wo.wrap = false
  else
    vim.api.nvim_set_current_win(window)
  end
end

local function command(client, source, name, arguments, use)
  client:request("workspace/executeCommand", { command = name, arguments = arguments }, function(err, answer)
    use(err, answer ~= vim.NIL and answer or nil)
  end, source)
end

local function ask(client, source, line, use)
  command(client, source, M.COMMAND, { vim.uri_from_bufnr(source), line, true }, use)
end

-- The number of the link under the cursor, else of the line's first: [text](#number).
local function link_at_cursor()
  local line, column, first = vim.api.nvim_get_current_line(), vim.api.nvim_win_get_cursor(0)[2] + 1, nil
  for from, number, to in line:gmatch("()%[[^%]]*%]%(#(%d+)%)()") do
    first = first or tonumber(number)
    if from <= column and column < to then
      return tonumber(number)
    end
  end
  return first
end

-- A rule's page opens beside the cursor; words of a document in the window that shows it.
local function follow_link(client, source, links)
  local link = links[(link_at_cursor() or -1) + 1] or {}
  if link.rule then
    command(client, source, RULE_PAGE, { link.rule }, function(_, page)
      vim.lsp.util.open_floating_preview(vim.split(vim.trim(page or ""), "\n"), "markdown", { focus_id = "spec_lsp_rule" })
    end)
  elseif link.uri then
    local window = vim.fn.bufwinid(source)
    if window ~= -1 then
      vim.api.nvim_set_current_win(window)
    end
    vim.lsp.util.show_document({ uri = link.uri, range = link.range }, client.offset_encoding, { reuse_win = true, focus = true })
  end
end

local function write(client, source, view)
  local buf = buffer()
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(vim.trim(view.text), "\n"))
  vim.bo[buf].modifiable = false
  vim.keymap.set("n", "<CR>", function()
    follow_link(client, source, view.links)
  end, { buffer = buf, desc = "Follow the link" })
  return buf
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
      ask(client, source, vim.api.nvim_win_get_cursor(0)[1] - 1, function(_, view)
        if view then
          write(client, source, view)
        end
      end)
    end,
  })
end

local function show(client, source, line)
  ask(client, source, line, function(err, view)
    if not view then
      vim.notify(err and err.message or "no SGLang launch in this file", vim.log.levels.WARN)
      return
    end
    open(write(client, source, view))
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
