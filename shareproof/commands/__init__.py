"""The commands of the command line, one subject a file; they parse, call and print.

These files declare commands and their options, and import no more than that takes: a shell that
completes a word imports all of them. What a command works with is imported when it is called.
"""
