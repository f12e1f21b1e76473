"""The grouped verbs of the command line: a file a group, a verb one library call."""
