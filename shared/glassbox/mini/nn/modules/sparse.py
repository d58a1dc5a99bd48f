"""Embedding: a table of vectors looked up by number (PyTorch: torch/nn/modules/sparse.py)."""

from typing import Any

from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module


class Embedding(Module):
    """weight: float[num_embeddings, embedding_dim]; row padding_idx stays zero and gets no gradient."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("padding_idx must be within num_embeddings")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(init.empty((num_embeddings, embedding_dim), None, None))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].zero_()

    def forward(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
