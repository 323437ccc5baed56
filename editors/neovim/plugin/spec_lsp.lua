-- :SpecLspResolved opens the configuration that SGLang will run the launch under the cursor with.
if vim.g.loaded_spec_lsp or vim.fn.has("nvim-0.11") == 0 then
  return
end
vim.g.loaded_spec_lsp = true

local NAME = "spec-lsp://resolved"

local function show(markdown)
  local buf = vim.fn.bufnr(NAME)
  if buf == -1 then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, NAME)
    vim.bo[buf].filetype = "markdown"
  end
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(vim.trim(markdown), "\n"))
  vim.bo[buf].modifiable = false
  local window = vim.fn.bufwinid(buf)
  if window == -1 then
    vim.cmd("botright vertical sbuffer " .. buf)
  else
    vim.api.nvim_set_current_win(window)
  end
end

vim.api.nvim_create_user_command("SpecLspResolved", function()
  local client = vim.lsp.get_clients({ bufnr = 0, name = "spec_lsp" })[1]
  if not client then
    vim.notify("spec-lsp is not running for this file (:checkhealth spec_lsp)", vim.log.levels.WARN)
    return
  end
  local arguments = { vim.uri_from_bufnr(0), vim.api.nvim_win_get_cursor(0)[1] - 1 }
  client:request("workspace/executeCommand", { command = "spec-lsp.showResolved", arguments = arguments }, function(err, markdown)
    if err or not markdown or markdown == vim.NIL then
      vim.notify(err and err.message or "no SGLang launch in this file", vim.log.levels.WARN)
    else
      show(markdown)
    end
  end)
end, { desc = "Show the configuration SGLang will run with" })
