"""The commands of the command line, a subject a file; each asks the house and prints."""
