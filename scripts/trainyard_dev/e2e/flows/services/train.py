"""A training job that computes in every second window of the clock: its neighbours are measured with and without it.

The training's result is irrelevant: it runs until it is removed. One argument: seconds of a window.
"""

import sys
import time

import torch

window = float(sys.argv[1])
torch.set_num_threads(2)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data, labels = torch.randn(256, 512), torch.randint(0, 10, (256,))
print("ready", flush=True)
while True:
    if int(time.time() // window) % 2:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), labels).backward()
        optimizer.step()
    else:
        time.sleep(0.05)
