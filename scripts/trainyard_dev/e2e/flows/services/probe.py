"""Sends requests to services repeatedly, in one thread per service, and prints the time and duration of each.

Arguments: seconds, an object of the store (bucket/name), then name=URL for each web service. Prints one line per
request: name, Unix seconds, duration in seconds, -1 for one without an answer.
"""

import io
import sys
import threading
import time
import urllib.request
from collections.abc import Callable

from trainyard_agent.store.connect import access, client

PAUSE_S, PATIENCE_S = 0.02, 10
SIZE = 64 * 1024
end = time.time() + float(sys.argv[1])
bucket, _, name = sys.argv[2].partition("/")
store = client(access(), patient=False)
lines: list[str] = []


def stored() -> None:
    answer = store.get_object(bucket, name)
    try:
        if len(answer.read()) != SIZE:
            raise OSError("the object is cut off")
    finally:
        answer.close()
        answer.release_conn()


def page(url: str) -> Callable[[], None]:
    def get() -> None:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            answer.read()

    return get


def watch(who: str, ask: Callable[[], None]) -> None:
    while (began := time.time()) < end:
        start = time.perf_counter()
        try:
            ask()
            took = time.perf_counter() - start
        except Exception:  # whatever the error, the request counts as lost
            took = -1.0
        lines.append(f"{who} {began:.4f} {took:.5f}")
        time.sleep(PAUSE_S)


store.put_object(bucket, name, io.BytesIO(b"x" * SIZE), SIZE)
asked = {"store": stored} | {who: page(url) for who, _, url in (word.partition("=") for word in sys.argv[3:])}
threads = [threading.Thread(target=watch, args=item) for item in asked.items()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
store.remove_object(bucket, name)
print("\n".join(lines), flush=True)
