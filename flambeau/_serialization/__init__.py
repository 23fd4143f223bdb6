"""The engine room of `flambeau.serialization`: containers, the pickle machine, readers and writers of each format."""
