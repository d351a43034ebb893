"""Casts whose outcome hangs on the device."""

from dflash_audit.loadplan import LoadPlan


def without_meaning(plan: LoadPlan) -> set[str]:
    """Parameters with a cast of integers to 8-bit floats: one out of range becomes another on each device."""
    return {
        fill.slot.name
        for fills in plan.fills.values()
        for fill in fills
        if "int" in fill.dtype and fill.slot.parameter.dtype.startswith("float8")
    }
