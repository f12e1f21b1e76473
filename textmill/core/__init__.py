"""The words of textmill: types, errors, config base, seeds, atomic files, progress."""
