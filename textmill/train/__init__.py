"""Our own training loop: optimizer, loss, checkpoints, exact resume, best state."""
