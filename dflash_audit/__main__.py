"""`python -m dflash_audit`, where the console script is not on the path."""

from dflash_audit.cli import main

main()
