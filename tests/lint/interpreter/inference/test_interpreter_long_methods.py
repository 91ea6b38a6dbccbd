"""Attributes that a method of hundreds of lines sets: only what makes them is read."""

from __future__ import annotations

from linting import ALL, check, table

LONG = "\n".join(f"                self.block{i} = nn.Linear(3, 4)" for i in range(260))


@table(
    {
        "a tensor": """
                self.freqs = torch.arange(n, device="cuda")
        """,
        "made of a name": """
                steps = torch.arange(n, device="cuda")
                scaled = steps * 2
                self.freqs = scaled
        """,
        "made of another attribute": """
                self.steps = torch.arange(n, device="cuda")
                self.freqs = self.steps.float()
        """,
        "under a condition, and cast": """
                self.freqs = torch.arange(n, device="cuda")
                if n > 3:
                    with torch.no_grad():
                        self.freqs = self.freqs.to(torch.float16)
        """,
        "on both sides of a condition": """
                if n > 3:
                    self.freqs = torch.zeros(n, device="cuda")
                else:
                    self.freqs = torch.ones(n, device="cuda")
        """,
        "under try": """
                try:
                    self.freqs = torch.zeros(n, device="cuda")
                except ValueError:
                    self.freqs = torch.ones(n, device="cuda")
        """,
        "a buffer": """
                self.register_buffer("freqs", torch.arange(n))
        """,
    }
)
def test_what_makes_it_a_tensor(code: str) -> None:
    check(_class(code, "float(self.freqs)  # TPF101"), ALL, only=frozenset(("TPF101",)))


@table(
    {
        "a number": """
                self.freqs = n * 2
        """,
        "an array": """
                rows = np.arange(n)
                self.freqs = rows
        """,
        "a name that is bound anew": """
                rows = torch.arange(n, device="cuda")
                rows = 3
                self.freqs = rows
        """,
    }
)
def test_what_makes_it_none(code: str) -> None:
    check(_class(code, "float(self.freqs)"), ALL, only=frozenset(("TPF101",)))


def test_too_much_for_one_attribute_is_left() -> None:
    rows = "\n".join("                total = total + n" for _ in range(80))
    code = f"""
                total = torch.zeros(3, device="cuda")
{rows}
                self.freqs = total
        """
    check(_class(code, "float(self.freqs)"), ALL, only=frozenset(("TPF101",)))


def _class(made: str, read: str) -> str:
    return f"""
        class Net(nn.Module):
            def __init__(self, n: int):
                super().__init__()
{LONG}
{made}

            def forward(self, x):
                return x * {read}
        """
