"""What an audit finds, one file for each kind."""
