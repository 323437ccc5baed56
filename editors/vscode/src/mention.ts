/** Which documents may launch SGLang: the server is started for the first of them, not before. Pure. */

const LAUNCH = /sglang|spec-lsp/i;

/** Keys that only files of settings for SGLang have: such a file need not say SGLang's name. */
const CONFIG =
  /^[ \t"']*(?:speculative[-_]|attention[-_]backend|mem[-_]fraction[-_]static|chunked[-_]prefill[-_]size|cuda[-_]graph[-_]|tp(?:[-_]size)?["']?[ \t]*:|tensor[-_]parallel[-_]size|model[-_]path)/m;

export function mentions(language: string, text: string): boolean {
  return LAUNCH.test(text) || (language === "yaml" && CONFIG.test(text));
}
