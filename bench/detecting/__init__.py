"""The trainings that the guard is judged on: cases, runs, judging them again, the table."""
