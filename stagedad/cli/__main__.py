"""`python -m stagedad.cli` is `stagedad`."""

from stagedad.cli import main

main()
