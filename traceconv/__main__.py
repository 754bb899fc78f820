"""`python -m traceconv` is the command `traceconv`."""

from traceconv.cli import main

if __name__ == "__main__":
    main()
