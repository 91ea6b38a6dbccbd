"""Pictures of what the model does."""

from .cache import Cache


def attention_picture(model, words, path):
    """Draw how far the words of a batch are apart."""
    import matplotlib.pyplot as plt

    cache = Cache()
    model(words, cache)
    distance = (cache.k[:, :, None] - cache.k[:, None]).norm(dim=-1)
    figure, axes = plt.subplots(len(words))
    for axis, picture in zip(axes, distance):
        axis.imshow(picture.detach().cpu().numpy())
        axis.set_title(f"largest {picture.max().item():.2f}")
    figure.savefig(path)


def show_sentence(words):
    """A sentence as text."""
    return " ".join(str(word.item()) for word in words)
