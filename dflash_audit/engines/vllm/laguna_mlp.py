"""What follows the attention in a layer of Laguna: one MLP, or a mixture of experts.

Source: vLLM 0.33.0 `model_executor/models/laguna.py` (`LagunaMLP`, `LagunaMoE`) and
`model_executor/layers/fused_moe/` (`layer.py`, `config.py`).
"""

from typing import Any

from dflash_audit.engines.vllm.assembly import Assembly
from dflash_audit.engines.vllm.fields import Config, needed, real
from dflash_audit.engines.vllm.quantization.experts import SCORES, Experts
from dflash_audit.refusal import Refused
from dflash_audit.tree import Parameter


def mlp(assembly: Assembly, config: Config, hidden: int, size: int, name: str) -> None:
    """`LagunaMLP`, whose gate and up are not fused."""
    assembly.container(name, "LagunaMLP")
    for part in ("gate_proj", "up_proj"):
        assembly.column(f"{name}.{part}", hidden, size, f"{name}.{part}")
    assembly.row(f"{name}.down_proj", size, hidden, f"{name}.down_proj")
    if needed(config, "hidden_act") != "silu":
        raise Refused(f"unsupported activation: {config['hidden_act']}, only silu is supported")


def is_mixture(config: Config, kind: Any) -> bool:
    """Whether a layer of this kind is a mixture of experts."""
    if kind != "sparse":
        return False
    count = needed(config, "num_experts")
    if not isinstance(count, int | float):
        raise Refused(f"num_experts must be a number, got {count!r}")
    return count > 0


def mixture(assembly: Assembly, config: Config, hidden: int, name: str) -> None:
    """`LagunaMoE`: a gate, an expert that all tokens share where it has a size, and the routed experts."""
    count, shared = _size(config, "num_experts"), _size(config, "shared_expert_intermediate_size")
    needed(config, "num_experts_per_tok")
    real(config, "moe_routed_scaling_factor", 1.0)
    if assembly.tp > count:
        raise Refused(f"num_experts {count} is less than {assembly.tp} ranks")
    assembly.container(name, "LagunaMoE")
    assembly.gate(f"{name}.gate", hidden, count, f"{name}.gate")
    if shared > 0:
        mlp(assembly, config, hidden, shared, f"{name}.shared_expert")
    needed(config, "moe_apply_router_weight_on_input")
    inner = assembly.divide(_size(config, "moe_intermediate_size"))
    assembly.container(f"{name}.experts", "MoERunner")
    layer = Experts(f"{name}.experts", count, hidden, inner, assembly.tp, assembly.capability)
    bias = Parameter(SCORES, (count,), "float32")
    assembly.experts(f"{name}.experts.routed_experts", layer, bias)


def _size(config: Config, key: str) -> int:
    """A value that torch takes for a size as it is."""
    value = needed(config, key)
    if not isinstance(value, int) or (value is True and key == "num_experts"):
        raise Refused(f"{key} must be a whole number, got {value!r}")
    return int(value)
