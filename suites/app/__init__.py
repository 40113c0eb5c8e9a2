"""What a program does with the records of a share group, judged from its frames: the rules FRM."""
