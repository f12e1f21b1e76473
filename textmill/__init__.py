"""textmill takes labelled or raw text to a model that serves and can be replaced while it serves.

Importing this package has no effects and loads no heavy library; import the stage you need
(`textmill.pipeline`, `textmill.data`, `textmill.serve`, ...).
"""

__version__ = "0.1.0"
