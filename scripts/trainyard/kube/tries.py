"""Retries of requests to the API server, and readable causes of failed ones."""

import re

import urllib3


def retries(again: bool) -> urllib3.Retry:
    """Retries of a request: always if it was never sent; if it may have been processed, only with `again`."""
    return urllib3.Retry(
        total=3 if again else 2,
        connect=2,
        read=2 if again else 0,
        redirect=0,
        status=3 if again else 0,
        status_forcelist=(429, 502, 503, 504) if again else (),
        allowed_methods=None,
        backoff_factor=0.3,
        raise_on_status=False,
    )


def cause(error: object) -> str:
    """The innermost reason of an error, without the library's object names."""
    text = str(error).rsplit(">: ", 1)[-1].rsplit("): ", 1)[-1]
    return re.sub(r"^Failed to establish a new connection: (\[Errno -?\d+\] )?", "", text)
