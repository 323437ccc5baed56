// Bundles the page into the Python package: what `spec-lsp playground` serves. Run `npm run build` after a change of src/.
import { build } from "esbuild";

await build({
  entryPoints: ["src/page.ts"],
  bundle: true,
  minify: true,
  legalComments: "none",
  format: "esm",
  target: "es2022",
  charset: "utf8",
  outfile: process.argv[2] ?? "../../spec_lsp/server/page/page.js",
});
