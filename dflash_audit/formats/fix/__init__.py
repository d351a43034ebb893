"""A repair of config.json, as it is written."""
