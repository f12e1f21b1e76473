"""What can be tried when a training has fallen into the constant answer: one file a cure."""
