"""Command ``python -m local.kusto``: starts the Data Explorer emulator alone, as ``python -m emulators.kusto`` does."""

from emulators.kusto.__main__ import main

if __name__ == "__main__":
    main()
