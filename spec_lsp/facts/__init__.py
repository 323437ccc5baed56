"""What can be known of the world a launch will meet: hardware, model, environment variables."""
