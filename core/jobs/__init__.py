"""Jobs: typed configs, the registry, run directories, the command line."""
