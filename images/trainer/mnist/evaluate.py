"""Evaluation of a trained model: its accuracy, and its confusion matrix."""

from __future__ import annotations

import numpy as np

from mnist import data, perceptron, store


def load_model(folder: str) -> perceptron.Perceptron:
    """The model that a trainer left in a folder."""
    return perceptron.load(folder)


def load_tests(folder: str) -> tuple[np.ndarray, np.ndarray]:
    """The test images and labels of a data set's folder."""
    return data.load_pair(store.open_store(folder), data.TEST_IMAGES, data.TEST_LABELS)


def confusion(model: perceptron.Perceptron, x: np.ndarray, y: np.ndarray) -> list[list[int]]:
    """Counts: a row for each true class, a column for each predicted class."""
    table = np.zeros((data.CLASSES, data.CLASSES), int)
    for at in range(0, len(y), 1000):
        np.add.at(table, (y[at : at + 1000], model.logits(x[at : at + 1000]).argmax(1)), 1)
    return table.tolist()
