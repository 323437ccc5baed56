-- :SpecLspResolved opens the configuration that SGLang will run the launch under the cursor with.
if vim.g.loaded_spec_lsp or vim.fn.has("nvim-0.11") == 0 then
  return
end
vim.g.loaded_spec_lsp = true

vim.api.nvim_create_user_command("SpecLspResolved", function()
  require("spec_lsp").show_at_cursor()
end, { desc = "Show the configuration SGLang will run with" })
