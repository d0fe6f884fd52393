"""Tiny wheels, made on the spot, and an index that serves them as a site's does."""

import hashlib
import subprocess
import sys
import zipfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_server import Answers, serving

IMAGE = str(Path(sys.base_prefix) / "bin/python3")  # a Python that is no virtual environment


def wheel(
    folder: Path, name: str, version: str, text: str = "", *, needs: tuple[str, ...] = (), tag: str = "py3-none-any"
) -> Path:
    """A wheel of one module whose text is given; it also has a program of its own name."""
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    files = {
        f"{module}.py": text or f"VERSION = {version!r}\n\ndef main():\n    print('{name}', VERSION)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {one}\n" for one in needs),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
    }
    record = [f"{path},sha256={_record(data.encode())},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{module}-{version}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for one, data in files.items():
            archive.writestr(zipfile.ZipInfo(one, (2020, 1, 1, 0, 0, 0)), data)
    return path


def image(folder: Path, *wheels: Path) -> str:
    """What an image has in PYTHONPATH: these wheels alone, in that folder."""
    subprocess.run([IMAGE, "-m", "pip", "install", "-q", "--no-deps", f"--target={folder}", *wheels], check=True)
    return str(folder)


def sha256(path: Path) -> str:
    """Its digest, as requirements name it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _record(data: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@contextmanager
def index(folder: Path, user: str = "", password: str = "") -> Iterator[tuple[str, list[str]]]:
    """Serves a folder of wheels; yields its address and the paths that were asked for, which grow."""
    asked: list[str] = []
    key = "Basic " + b64encode(f"{user}:{password}".encode()).decode()

    class Handler(Answers):
        def get(self) -> None:
            asked.append(self.path)
            if user and self.headers.get("Authorization") != key:
                return self._answer(401, b"", "WWW-Authenticate")
            where = self.path.strip("/").split("/")
            if where[0] == "files":
                return self._answer(200, (folder / where[1]).read_bytes())
            found = [
                one for one in sorted(folder.glob("*.whl")) if one.name.split("-")[0].replace("_", "-") == where[1]
            ]
            links = [f'<a href="/files/{one.name}#sha256={sha256(one)}">{one.name}</a>' for one in found]
            return self._answer(200 if found else 404, "\n".join(links).encode())

        def _answer(self, status: int, body: bytes, header: str = "") -> None:
            self.send_response(status)
            if header:
                self.send_header(header, 'Basic realm="index"')
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as address:
        yield f"{address}/simple", asked
