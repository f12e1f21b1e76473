"""Text to token batches: the tokenizer door, padding, lengths, token budget, collator."""
