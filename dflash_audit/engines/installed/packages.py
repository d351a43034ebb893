"""The packages that can be asked, whether they are installed beside the audit, and which version.

Imports nothing of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final


@dataclass(frozen=True, slots=True)
class Package:
    """A package that holds a serving engine.

    `engine` is its name in `LIVE`, `module` what is imported and installed, `title` how
    people call it, `child` the module that runs as the process which imports it.
    """

    engine: str
    module: str
    title: str
    child: str

    @property
    def how_to_install(self) -> str:
        return f"install {self.title} into this environment (pip install {self.module})"

    @property
    def profiles(self) -> str:
        """How the names of its profiles begin."""
        return f"{self.module}-"

    def installed_version(self) -> str | None:
        """The version that this Python would import, None where there is none."""
        found = find_spec(self.module)
        if found is None or found.origin is None:  # a folder of that name is no package
            return None
        try:
            return version(self.module)
        except PackageNotFoundError:
            return "unknown"  # a source tree on the path, without metadata


SGLANG: Final = Package("sglang@installed", "sglang", "SGLang", "dflash_audit.engines.sglang_installed.child")
VLLM: Final = Package("vllm@installed", "vllm", "vLLM", "dflash_audit.engines.vllm_installed.child")

PACKAGES: Final[Mapping[str, Package]] = {package.engine: package for package in (SGLANG, VLLM)}
"""Live engine -> its package."""
