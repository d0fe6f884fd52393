"""The same model behind kserve's Python server, where that is installed: `trainyard bench serving` measures it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.argv, FOLDER, PORT = sys.argv[:1], Path(sys.argv[1]), int(sys.argv[2])

import kserve  # noqa: E402
import numpy as np  # noqa: E402
from kserve.utils.utils import get_predict_response  # noqa: E402

from trainyard_dev.serving import bare  # noqa: E402


class Peer(kserve.Model):
    """A model as in kserve's documentation: arrays in, arrays out."""

    def load(self) -> bool:
        """Loads the file."""
        self.call = bare.model(FOLDER, 1)
        self.ready = True
        return True

    def predict(self, payload: kserve.InferRequest, *args: Any, **more: Any) -> Any:
        """Returns the first output; none of kserve's helpers stacks several."""
        found = self.call(np.asarray(payload.inputs[0].as_numpy(), np.float32))
        return get_predict_response(payload, np.asarray(found[0]), self.name)


if __name__ == "__main__":
    peer = Peer("digits")
    peer.load()
    kserve.ModelServer(http_port=PORT, enable_grpc=False, enable_latency_logging=False, workers=1).start([peer])
