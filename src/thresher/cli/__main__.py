from thresher.cli import main

main()
