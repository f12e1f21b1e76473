"""A bundle opened for answers: ONNX Runtime or torch, and the checks that both say the same."""
