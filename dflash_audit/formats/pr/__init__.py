"""A pull request held against its base, as it is written."""
