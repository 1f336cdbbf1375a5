"""Edge gateway: reads messages of a plant, stores them on disk, and sends them to a workspace over HTTPS."""
