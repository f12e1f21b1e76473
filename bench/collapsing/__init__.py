"""The parts of `bin/bench collapse`: what is run, how a run is made, what the runs add up to."""
