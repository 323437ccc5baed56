-- Drives a real Neovim: nvim --headless -i NONE -n -S drive.lua, with a standard input that stays open.
-- Reads what to do from the environment; writes one line of JSON for each step to standard output; exit 0 pass, 1 fail.
-- The steps are a coroutine beside the editor's own loop, so that keys are typed and events come as they do for a person.
local function say(step, value)
  io.stdout:write(vim.json.encode({ step = step, value = value == nil and vim.NIL or value }), "\n")
end

local function wait(what, condition)
  local deadline = vim.uv.hrtime() + tonumber(vim.env.PATIENCE_MS) * 1e6
  while true do
    local found = condition()
    if found then
      return found
    elseif vim.uv.hrtime() > deadline then
      error("waited in vain for " .. what)
    end
    local steps = coroutine.running()
    vim.defer_fn(function()
      coroutine.resume(steps)
    end, 10)
    coroutine.yield()
  end
end

local function type_keys(keys)
  vim.api.nvim_input(keys)
end

local function text(buf)
  return table.concat(vim.api.nvim_buf_get_lines(buf or 0, 0, -1, false), "\n")
end

local function found(buf)
  for _, d in ipairs(vim.diagnostic.get(buf or 0)) do
    if d.code == vim.env.RULE then
      return d
    end
  end
end

local function client()
  return vim.lsp.get_clients({ bufnr = 0, name = "spec_lsp" })[1]
end

local function cursor_behind(pattern)
  local line, column = vim.fn.searchpos(pattern, "nwe"), nil
  line, column = line[1], line[2]
  assert(line > 0, pattern .. " is not in the text")
  vim.api.nvim_win_set_cursor(0, { line, column - 1 })
end

local function shown_float()
  for _, w in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(w).relative ~= "" then
      return w
    end
  end
end

local steps = {}

function steps.attach()
  vim.cmd.edit(vim.fn.fnameescape(vim.env.SCRIPT))
  wait("the client to attach", function()
    return client() and client().initialized
  end)
  say("attached", { name = client().server_info.name, encoding = client().offset_encoding, root = client().root_dir })
end

function steps.silent()
  vim.cmd.edit(vim.fn.fnameescape(vim.env.SCRIPT))
  say("attached", client() ~= nil)
end

-- Settings may reach the server after the first diagnostics: a test waits for the severity that they make.
function steps.diagnostics()
  local d = wait("diagnostics", function()
    local d = found()
    return d and (not vim.env.SEVERITY or d.severity == tonumber(vim.env.SEVERITY)) and d
  end)
  local range = vim.api.nvim_buf_get_text(0, d.lnum, d.col, d.end_lnum, d.end_col, {})
  say("diagnostic", { code = d.code, severity = d.severity, message = d.message, text = table.concat(range, "\n") })
  vim.api.nvim_win_set_cursor(0, { d.lnum + 1, d.col })
end

-- Asks again until the hover holds what the test waits for: settings may reach the server after the first one.
function steps.hover()
  type_keys("K")
  local float = wait("the hover window", function()
    local window = shown_float()
    if window and not text(vim.api.nvim_win_get_buf(window)):find(vim.env.HOVER or "", 1, true) then
      vim.api.nvim_win_close(window, true)
      type_keys("K")
      return
    end
    return window
  end)
  say("hover", text(vim.api.nvim_win_get_buf(float)))
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
  local before = text()
  type_keys("gra")
  wait("the fix", function()
    return text() ~= before
  end)
  say("menu", menu)
  wait("the diagnostic to go", function()
    return found() == nil
  end)
end

function steps.fix_all()
  local before = text()
  type_keys("grf")
  wait("fix-all", function()
    return text() ~= before
  end)
end

function steps.complete()
  cursor_behind("trtllm_mha")
  type_keys("a --page-siz<C-x><C-o>")
  wait("the menu", function()
    return vim.fn.pumvisible() == 1
  end)
  type_keys("<C-n><C-y>")
  wait("the completion", function()
    return vim.api.nvim_get_current_line():find("--page-size", 1, true) ~= nil
  end)
  type_keys("<Esc>")
  wait("normal mode", function()
    return vim.api.nvim_get_mode().mode == "n"
  end)
  say("completed", vim.api.nvim_get_current_line())
end

function steps.complete_while_typing()
  cursor_behind("trtllm_mha")
  type_keys("a -")
  local menu = wait("the menu", function()
    return vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "items" }).items
  end)
  say("offered", vim.iter(menu):map(function(item) return item.word end):totable())
  type_keys("<C-e><Esc>u")
  wait("normal mode", function()
    return vim.api.nvim_get_mode().mode == "n" and vim.fn.pumvisible() == 0
  end)
end

function steps.hints()
  local hints = wait("inlay hints", function()
    local all = vim.lsp.inlay_hint.get({ bufnr = 0 })
    return #all > 0 and all
  end)
  say("hints", vim.iter(hints):map(function(hint)
    return vim.iter(hint.inlay_hint.label):map(function(part) return part.value end):join("")
  end):totable())
end

function steps.lens()
  local lenses = wait("a lens", function()
    local all = vim.lsp.codelens.get(0)
    return #all > 0 and all
  end)
  say("lens", lenses[1].command.title)
  vim.api.nvim_win_set_cursor(0, { lenses[1].range.start.line + 1, 0 })
  type_keys("grl")
  steps.see_resolved()
end

function steps.resolved()
  vim.cmd.SpecLspResolved()
  steps.see_resolved()
end

function steps.see_resolved()
  local shown = wait("the resolved configuration", function()
    return vim.fn.bufname() == "spec-lsp://resolved" and text():find("| setting", 1, true) and text()
  end)
  say("resolved", shown)
  vim.cmd.wincmd("p")
end

-- A link in the line that holds some text leads to a place, or to a page.
local function follow_link(held)
  vim.api.nvim_set_current_win(vim.fn.bufwinid("spec-lsp://resolved"))
  vim.fn.cursor(1, 1)
  assert(vim.fn.search(held, "cW") > 0, held)
  type_keys("<CR>")
end

function steps.links()
  follow_link([[^| \[speculative-num-steps\](#]])
  say("led to", wait("the words", function()
    local line = vim.fn.bufname() ~= "spec-lsp://resolved" and vim.api.nvim_get_current_line()
    return line and line:sub(vim.fn.col("."))
  end))
  follow_link([[\*\*\zs\[]])
  say("page", wait("the page of the rule", function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        return text(vim.api.nvim_win_get_buf(window))
      end
    end
  end))
end

function steps.change_and_see()
  cursor_behind("--speculative-num-steps 5")
  type_keys("r4")
  local buf = vim.fn.bufnr("spec-lsp://resolved")
  say("updated", wait("the configuration to follow", function()
    return text(buf):find("%-%-speculative%-num%-steps 4") and text(buf)
  end))
end

-- A flaw that is written in a --config file is told in the script that uses it and in the file.
function steps.both_files()
  local script = vim.api.nvim_get_current_buf()
  vim.cmd.edit(vim.fn.fnameescape(vim.env.CONFIG))
  local config = vim.api.nvim_get_current_buf()
  wait("the diagnostic in the configuration", function() return found(config) end)
  wait("the diagnostic in the script", function() return found(script) end)
  say("in both", { script = found(script).lnum, config = found(config).lnum })
  cursor_behind("topk: 8")
  type_keys("r1")
  wait("both diagnostics to go", function()
    return found(config) == nil and found(script) == nil
  end)
end

function steps.write()
  vim.cmd.write()
  say("written", text())
end

function steps.health()
  vim.cmd.checkhealth("spec_lsp")
  say("health", wait("the health report", function()
    return vim.bo.filetype == "checkhealth" and text():find("running", 1, true) and text()
  end))
end

local function run()
  for step in vim.gsplit(vim.env.STEPS, " ") do
    steps[step]()
  end
end

local function main()
  local ok, problem = xpcall(run, debug.traceback)
  if not ok then
    say("failed", problem)
  end
  vim.cmd(ok and "qall!" or "cquit 1")
end

vim.schedule(coroutine.wrap(main))
