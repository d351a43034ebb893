"""Where checkpoints come from: a folder, a file, or a repo of the Hub, read by their headers."""
