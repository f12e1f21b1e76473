"""The sequence in which examples reach the model: schedules and the resumable batch plan."""
