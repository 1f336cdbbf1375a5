"""Start the Data Explorer emulator alone: ``python -m local.kusto``, an alias of ``python -m emulators.kusto``."""

from emulators.kusto.__main__ import main

if __name__ == "__main__":
    main()
