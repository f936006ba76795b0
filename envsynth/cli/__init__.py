"""The command line: one file a command; a body parses, makes one library call and renders."""
