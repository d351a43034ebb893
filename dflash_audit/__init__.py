"""An offline auditor of DFlash draft checkpoints."""

__version__ = "0.1.0"
