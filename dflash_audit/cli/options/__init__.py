"""The options of the command line: their words, their help, and what counts as a wrong one."""
