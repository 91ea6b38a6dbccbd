"""What docstrings say of parameters, attributes and results: Google, NumPy and Sphinx style."""

from linting import ALL, check, table

DOCSTRINGS = {
    "Google": '''
        def step(x, n, mask=None):
            """Do it.

            Args:
                x (torch.Tensor): the values.
                n (int): how many.
                mask (Tensor, optional): which.

            Returns:
                float: the sum.
            """
            if n > 3:
                return x.item(), mask.item()  # TPF101, TPF101
        ''',
    "Google, in backticks": '''
        def step(x, n):
            """Do it.

            Args:
                x (:obj:`torch.Tensor`): the values.
                n (`int`): how many.
            """
            if n > 3:
                return x.item()  # TPF101
        ''',
    "NumPy": '''
        def step(x, n):
            """Do it.

            Parameters
            ----------
            x : torch.Tensor
                the values
            n : int
                how many
            """
            if n > 3:
                return x.item()  # TPF101
        ''',
    "Sphinx": '''
        def step(x, n):
            """Do it.

            :param x: the values
            :type x: torch.Tensor
            :param int n: how many
            """
            if n > 3:
                return x.item()  # TPF101
        ''',
    "Sphinx, type and name together": '''
        def step(x, n):
            """Do it.

            :param torch.Tensor x: the values
            :param int n: how many
            """
            if n > 3:
                return x.item()  # TPF101
        ''',
    "an annotation goes first": '''
        def step(x: float):
            """Do it.

            Args:
                x (Tensor): not any more.
            """
            return float(x)
        ''',
    "in brackets": '''
        def step(x, rows, other):
            """Do it.

            Arguments:
                x [torch.Tensor] - data
                rows [list] -
                other [list of numbers] - more
            """
            print(float(other), float(rows))
            return float(x)  # TPF101
        ''',
    "in brackets, behind a colon or a dash": '''
        def step(x, y, z):
            """Do it.

            Arguments:
                x: [torch.Tensor] - data
                - y [Tensor] - data
                z [0] the first one, [torch.Tensor] - data
            """
            print(float(z), y.item())  # TPF101
            return float(x)  # TPF101
        ''',
    "a list of tensors": '''
        def step(xs):
            """Do it.

            Args:
                xs (List[Tensor]): the values.
            """
            return xs[0].item()  # TPF101
        ''',
    "a tensor or a number": '''
        def step(x):
            """Do it.

            Args:
                x (Tensor or float): the value.
            """
            return float(x)
        ''',
    "the class's docstring, for __init__": '''
        class Loss(nn.Module):
            """A loss.

            Args:
                weight (Tensor): of each class.
                eps (float): a small number.
            """

            def __init__(self, weight, eps):
                super().__init__()
                self.weight = weight
                self.eps = eps

            def forward(self, x: Tensor):
                if self.eps > 0:
                    return x * self.weight.item()  # TPF101
        ''',
    "prose that names a tensor": '''
        def step(x):
            """Turn x into something. The Tensor: a story. x is (not) a torch.Tensor."""
            return float(x)
        ''',
    "brackets and bars": '''
        def step(x, more, other, n):
            """Do it.

            Args:
                x (Optional[torch.Tensor], optional): the values. Default: None.
                more (dict[str, Tensor]): further ones.
                other (Tensor | None): and another.
                n (Optional[int]): how many.
            """
            if n > 3 and other is not None:
                other.item()  # TPF101
            return x.item(), more["y"].item()  # TPF101, TPF101
        ''',
    "two names at once": '''
        def step(x, y):
            """Do it.

            Parameters
            ----------
            x, y : Tensor, shape (n,)
                the values
            """
            return x.item(), y.item()  # TPF101, TPF101
        ''',
    "like a tensor is none": '''
        def step(x):
            """Do it.

            Args:
                x: Tensor-like thing.
            """
            return float(x)
        ''',
    "attributes of a class": '''
        class State:
            """What is kept.

            Attributes:
                total (torch.Tensor): so far.
                count (int): of what.
            """

            def step(self):
                if self.count > 3:
                    return self.total.item()  # TPF101
        ''',
    "of the annotated tensor, that it is boolean": '''
        def step(x: Tensor, mask: Tensor, ids: Tensor, keep: Tensor | None = None):
            """Do it.

            :param mask: A :obj:`torch.BoolTensor` containing the mask
                to apply.
            :param ids: which, a LongTensor or a boolean mask
            :param keep: a boolean tensor
            """
            if keep is not None:
                x = x[keep]  # TPF402
            return x[mask] + x[ids]  # TPF402
        ''',
    "boolean is the flag, not the tensor": '''
        def step(x: Tensor, weights: Tensor, flag: bool):
            """Do it.

            Args:
                weights: of each row
                flag: a boolean, not a tensor of bools
            """
            return x[weights]
        ''',
}


@table(DOCSTRINGS)
def test_docstring_types(code: str) -> None:
    check(code)


RESULTS = {
    "Google": '''
        def load(n):
            """Load it.

            Returns:
                Tuple[Tensor, int]: the values, and how many.
            """
            return fetch(n)

        def step(n):
            x, k = load(n)
            if k > 3:
                return x.item()  # TPF101
        ''',
    "NumPy": '''
        def load(n):
            """Load it.

            Returns
            -------
            values : torch.Tensor
                those
            """
            return fetch(n)

        def step(n):
            return load(n).item()  # TPF101
        ''',
    "Sphinx": '''
        def load(n):
            """Load it.

            :return: the values
            :rtype: torch.Tensor
            """
            return fetch(n)

        def step(n):
            return load(n).item()  # TPF101
        ''',
    "what the body returns goes first": '''
        def length(x):
            """How long.

            Returns:
                torch.Tensor: once upon a time.
            """
            return len(x)

        def step(x: Tensor):
            if length(x) > 3:
                return x
        ''',
    "prose": '''
        def load(n):
            """Load it.

            Returns:
                The Tensor-like values: a list of numbers.
            """
            return fetch(n)

        def step(n):
            return float(load(n))
        ''',
    "several, one below the other": '''
        class Searcher(nn.Module):
            def forward_step(self, tokens):
                """One step.

                Returns
                -------
                log_probs : torch.Tensor
                    Of the current step.
                memory : No limit
                    What the next step needs
                    (e.g. hidden states).
                attn : torch.Tensor
                    The weights.
                """
                raise NotImplementedError

            def forward(self, tokens):
                for _ in range(3):
                    log_probs, memory, attn = self.forward_step(tokens)
                    if memory > 3 or log_probs.any():  # TPF301
                        return attn.item()  # TPF101
        ''',
    "a pair that is called a tensor": '''
        def forward(encoded, x: Tensor):
            """Encode.

            Parameters
            ----------
            encoded : torch.Tensor
                the encoded words
            """
            words, lengths = encoded
            if lengths > 3:
                return words
            return x
        ''',
}


@table(RESULTS)
def test_docstring_results(code: str) -> None:
    check(code)


@table(
    {
        "a loader of batches": '''
        class Trainer:
            """Trains.

            Args:
                loader (torch.utils.data.DataLoader): the data
                others [torch.DataLoader] - more
            """

            def __init__(self, loader, others, device):
                self.loader, self.others, self.device = loader, others, device

            def fit(self, model):
                for x in self.loader:
                    model(x.to(self.device)).backward()  # TPF503
                for (x, y), z in zip(self.loader, self.others):
                    x = x.to(self.device)  # TPF503
                    z = z.to(self.device)  # TPF503
                    model(x, y, z).backward()
        ''',
        "a loader or something else": '''
        def fit(model, loader, loaders, device):
            """Trains.

            Args:
                loader (DataLoader or list): the data
                loaders (list of DataLoader): the data
            """
            for x in loader:
                model(x.to(device)).backward()
            for x in loaders:
                model(x.to(device)).backward()
        ''',
    }
)
def test_loaders(code: str) -> None:
    check(code, ALL, only=frozenset(("TPF503",)))
