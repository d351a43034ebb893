"""Many drafts, one after the other and several at once, a line of JSON each.

`names` reads which, `listing` asks the Hub, `earlier` says what an earlier sweep has done,
`sweep` goes through them, `row` is what stays of each.
"""
