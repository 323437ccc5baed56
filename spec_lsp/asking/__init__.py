"""Asking the SGLang that somebody has installed: the one place that starts a program, and only when it is asked to."""
