"""Embedding: a table of vectors looked up by number (PyTorch: torch/nn/modules/sparse.py)."""

from typing import Any

from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module


class Embedding(Module):
    """weight: float[num_embeddings, embedding_dim]; row padding_idx begins as zero and gets no gradient.

    max_norm: rows that are longer, by norm_type, are scaled down to it when they are looked up.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.weight = Parameter(init.empty((num_embeddings, embedding_dim), dtype, device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += f", padding_idx={self.padding_idx}" if self.padding_idx is not None else ""
        text += f", max_norm={self.max_norm}" if self.max_norm is not None else ""
        text += f", norm_type={self.norm_type}" if self.norm_type != 2 else ""
        return text + (", scale_grad_by_freq=True" if self.scale_grad_by_freq else "")
