"""`python -m stagedad`: the command line."""

from stagedad.cli import main

if __name__ == "__main__":
    main()
