"""What can be known about where and with what a launch runs: hardware, model, environment variables."""
