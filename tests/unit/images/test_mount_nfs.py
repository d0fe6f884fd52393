"""The guard of the user-space NFS client's socket: whole replies, each from one connection, of an NFS server."""

import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from trainyard.paths import ROOT

# Reads one reply as libnfs 4.0.0 does: the count of bytes, the mark and the pointer to the body lie side by side, and a
# connection that ends leaves them as they are. Prints the body, or "gave up" after five connections.
READER = r"""
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct { uint64_t before; uint32_t pad, count; char mark[4]; char *body; } rpc;

static int reply(int fd) {
    for (;;) {
        uint32_t size = 4;
        char *into = rpc.mark;
        if (rpc.count >= 4) {
            memcpy(&size, rpc.mark, 4);
            size = (ntohl(size) & 0x7fffffff) + 4;
            if (!rpc.body) memcpy(rpc.body = malloc(size), rpc.mark, 4);
            into = rpc.body;
        }
        ssize_t got = recv(fd, into + rpc.count, size - rpc.count, 0);
        if (got <= 0) return -1;
        rpc.count += (uint32_t)got;
        if (rpc.count > 4 && rpc.count == size) return (int)size - 4;
    }
}

int main(int count, char **words) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[count - 1]))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    for (int try = 0; try < 5; try++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 2;
        int length = reply(fd);
        close(fd);
        if (length > 0) return printf("%.*s\n", length, rpc.body + 4), 0;
    }
    return puts("gave up"), 1;
}
"""


def reply(text: bytes, last: int = 0x80000000) -> bytes:
    return struct.pack(">I", last | len(text)) + text


WHOLE = b"the second answer, as the server sent it"
HALF = reply(b"the first answer, of which a part is missing")


@pytest.fixture
def read(tmp_path: Path) -> Callable[[list[bytes]], str]:
    """Returns what the reader gets from a server whose connections each send these bytes and then end."""
    (tmp_path / "reader.c").write_text(READER)
    record = ROOT / "images" / "mount-nfs" / "record.c"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Werror", "-I", record.parent]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "reader", tmp_path / "reader.c", record, "-ldl"], check=True)

    def go(connections: list[bytes]) -> str:
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve() -> None:
                for content in connections:
                    with server.accept()[0] as connection, suppress(OSError):
                        connection.sendall(content)
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(1)  # until the reader is done

            threading.Thread(target=serve, daemon=True).start()
            port = str(server.getsockname()[1])
            done = subprocess.run([tmp_path / "reader", port], capture_output=True, text=True, timeout=20, check=False)
            return done.stdout.strip() or done.stderr.strip()

    return go


@pytest.mark.parametrize("cut", [0, 2, 4, 5, 20, len(HALF) - 1])
def test_a_reply_that_breaks_off_is_not_mixed_with_the_next(read: Callable, cut: int) -> None:
    assert read([HALF[:cut], reply(WHOLE)]) == WHOLE.decode()


@pytest.mark.parametrize(
    "other",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        reply(b"x" * 30, last=0),
        reply(b"short"),
        struct.pack(">I", 0x80000000 | 2**24) + b"x" * 40,
    ],
    ids=["http", "fragment", "too short", "too long"],
)
def test_what_is_no_reply_is_left_behind(read: Callable, other: bytes) -> None:
    assert read([other, other, reply(WHOLE)]) == WHOLE.decode()


def test_the_server_may_be_gone_for_long(read: Callable) -> None:
    assert read([b""] * 5) == "gave up"
