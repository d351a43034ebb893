"""compressed-tensors, the layout that llm-compressor writes."""

from dflash_audit.quantization.compressed_tensors.config import read

__all__ = ["read"]
