"""Whether a profile is still what the installed engine does: both on the same drafts, compared.

`cases` finds the drafts, `differences` compares two runs, `check` goes through them.
"""
