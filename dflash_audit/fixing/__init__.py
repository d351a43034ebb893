"""From a checkpoint that an engine fails to the smallest change of its config.json that serves."""
