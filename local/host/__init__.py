"""Local host process: life cycle, triggers, timers, event hubs, the worker library, and the start of emulators."""
