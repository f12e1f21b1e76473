"""The server: a front that owns the sockets and one worker process for each loaded version."""
