"""What the demo differentiates: a two-layer softmax classifier, written as for NumPy."""

import stagedad.numpy as np


def loss(images, labels, w1, b1, w2, b2):
    """Mean cross-entropy; a row of `labels` is one-hot."""
    hidden = np.tanh(images @ w1 + b1)
    scores = hidden @ w2 + b2
    scores = scores - np.max(scores, axis=1, keepdims=True)
    surprise = np.log(np.sum(np.exp(scores), axis=1)) - np.sum(scores * labels, axis=1)
    return np.mean(surprise)
