"""The command line as `python -m thresher.cli`."""

from thresher.cli import main

main()
