"""A tensor that a loop makes longer becomes a list that is joined once."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

FIXED = {
    "set in the first round": (
        """
        def decode(self, z: Tensor):
            for i in range(z.shape[2]):  # frames
                if i == 0:
                    out = self.decoder(z[:, :, i])  # the first
                else:
                    out_ = self.decoder(z[:, :, i])
                    out = torch.cat([out, out_], 2)  # the others
            return out
        """,
        """
        def decode(self, z: Tensor):
            out_pieces = []
            for i in range(z.shape[2]):  # frames
                if i == 0:
                    out_pieces = [self.decoder(z[:, :, i])]  # the first
                else:
                    out_ = self.decoder(z[:, :, i])
                    out_pieces.append(out_)  # the others
            out = torch.cat(out_pieces, dim=2)
            return out
        """,
    ),
    "nothing yet": (
        """
        def decode(self, chunks: list[Tensor]):
            video = None
            for chunk in chunks:
                piece = chunk.sqrt()
                if video is None:
                    video = piece
                else:
                    video = torch.cat((video, piece), dim=2)
            return video
        """,
        """
        def decode(self, chunks: list[Tensor]):
            video = None
            video_pieces = []
            for chunk in chunks:
                piece = chunk.sqrt()
                if not video_pieces:
                    video_pieces = [piece]
                else:
                    video_pieces.append(piece)
            video = torch.cat(video_pieces, dim=2) if video_pieces else None
            return video
        """,
    ),
    "several at once, and in front": (
        """
        def collect(x: Tensor, ys: list[Tensor]):
            for y in ys:
                x = torch.cat([x, y, y * 2])
            for y in ys:
                x = torch.cat([y.exp(), x])
            return x
        """,
        """
        def collect(x: Tensor, ys: list[Tensor]):
            x_pieces = [x]
            for y in ys:
                x_pieces.extend([y, y * 2])
            x = torch.cat(x_pieces)
            x_pieces = [x]
            for y in ys:
                x_pieces.insert(0, y.exp())
            x = torch.cat(x_pieces)
            return x
        """,
    ),
}
REFUSED = {
    "its size is asked": """
        def collect(x: Tensor, ys: list[Tensor]):
            for y in ys:
                x = torch.cat([x, y.new_zeros(x.shape[0])])
            return x
        """,
    "returned from the loop": """
        def collect(x: Tensor, ys: list[Tensor]):
            for y in ys:
                x = torch.cat([x, y])
                if y.dim() > 3:
                    return x
            return x
        """,
    "the piece changes later": """
        def collect(x: Tensor, y: Tensor, n: int):
            for _ in range(n):
                z = y
                x = torch.cat([x, z])
                z += 1
            return x
        """,
    "a buffer that somebody fills": """
        def collect(x: Tensor, y: Tensor, n: int, fill):
            for _ in range(n):
                fill(y)
                x = torch.cat([x, y])
            return x
        """,
    "another value before": """
        def collect(x: Tensor, ys: list[Tensor]):
            for y in ys:
                if y.dim() == 1:
                    x = y.exp()
                else:
                    x = torch.cat([x, y.exp()])
            return x
        """,
    "two dimensions": """
        def collect(x: Tensor, ys: list[Tensor]):
            for y in ys:
                x = torch.cat([x, y.exp()], 0)
                x = torch.cat([x, y.exp()], 1)
            return x
        """,
    "stacked": """
        def collect(x: Tensor, ys: list[Tensor]):
            for y in ys:
                x = torch.stack([x, y.exp()])
            return x
        """,
}


@pytest.mark.parametrize(("before", "after"), FIXED.values(), ids=FIXED)
def test_it_becomes(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF205")


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_it_stays(code: str) -> None:
    check_fix(code, "", UNSAFE, code="TPF205")
