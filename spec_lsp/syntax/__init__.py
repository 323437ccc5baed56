"""Text to launches. Knows no flag of SGLang, only how it is started."""
