"""Prints on which device a command computes, then becomes the command; passed to its pod as text.

`python3 -c TEXT MODULE WORDS...`: MODULE is the framework to check first, WORDS the command. The framework isn't
imported: its files tell what it was built for, and the driver lists the GPUs. If TRAINYARD_EXIT names a
file, this program stays the parent of the command and writes the exit code there.
"""

import ctypes
import os
import re
import signal
import sys
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version

# By framework, `build` of its kind in registry.py; `pods.device` fills this in.
BUILDS: "dict[str, tuple[str, str, str]]" = {}
HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def build(first: str) -> "tuple[str, str, str] | None":
    """(framework, version, CUDA version or "") of `first` if installed, else of another framework; None without any."""
    for name in sorted(BUILDS, key=lambda one: one != first):
        file, number, cuda = BUILDS[name]
        spec = PathFinder.find_spec(name)
        if spec is None or not spec.origin:
            continue
        text = read(os.path.join(os.path.dirname(spec.origin), file))
        held = next((one for one in ("13", "12") if PathFinder.find_spec(name + "_cuda" + one + "_plugin")), "")
        of_cuda = "its own" if cuda == "its own" and installed(name) else found(cuda, text) or held
        return name, found(number, text) or installed(name + "-cpu", name), of_cuda
    return None


def gpus() -> list[str]:
    """Names of the GPUs that the driver reports; empty without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, name, device = ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    names = []
    for index in range(count.value):
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, 100, device)
        names.append(name.value.decode(errors="replace"))
    return names


def sentence(first: str) -> str:
    """The line to print."""
    granted = os.environ.get("NVIDIA_VISIBLE_DEVICES", "")
    held = 0 if granted in ("", "void", "none") else len(granted.split(","))
    shown, made = gpus(), build(first)
    holds = str(held) + (" GPU" if held == 1 else " GPUs")
    if made is None:
        return "no framework is installed; the pod has " + (", ".join(shown) or (holds if held else "no GPU"))
    name, number, cuda = made
    named = " ".join((name, number)).strip()
    if cuda and shown:
        return "computes on " + ", ".join(shown) + " (" + named + ", CUDA " + cuda + ")"
    if cuda:
        why = "no driver answers for its " + holds if held else "the pod has no GPU"
        return "computes on the CPU: " + named + " is built for CUDA " + cuda + ", and " + why
    idle = ", so its " + holds + (" computes" if held == 1 else " compute") + " nothing" if held else ""
    return "computes on the CPU: " + named + " is a CPU build" + idle


def found(pattern: str, text: str) -> str:
    """The first group of a pattern's match; "" without a match."""
    match = re.search(pattern, text) if pattern else None
    return match.group(1) if match else ""


def read(path: str) -> str:
    """Text of a file; "" if the file can't be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(100000)
    except OSError:
        return ""


def installed(*packages: str) -> str:
    """Version of the first of these packages that is installed, or ""."""
    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return ""


def main(argv: list[str]) -> int:
    """Prints the line, once per MPI job, and runs the command; returns only if the command has ended or is missing."""
    first, told = os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0", os.environ.get("TRAINYARD_EXIT", "")
    if first:
        try:
            print("trainyard: " + sentence(argv[0]), flush=True)
        except Exception as error:
            print("trainyard: which device it computes on is not known: " + str(error), flush=True)
    return attended(argv[1:], told) if told and first else become(argv[1:])


def become(words: list[str]) -> int:
    """Replaces this process with the command; returns 127 if the command is missing."""
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print("error: " + words[0] + ": " + str(error.strerror), file=sys.stderr, flush=True)
    return 127


def attended(words: list[str], file: str) -> int:
    """Runs the command as a child, forwards every signal, and writes its exit code, or minus its signal, to `file`.

    The file is empty while the command runs, and remains so when both are killed.
    """
    write(file, "")
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
        os._exit(become(words))
    for number in HANDED_ON:
        signal.signal(number, lambda number, _: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    write(file, str(code))
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def write(file: str, text: str) -> None:
    """Writes a file if possible: a full disk doesn't fail the command."""
    try:
        with open(file, "w", encoding="ascii") as out:
            out.write(text)
    except OSError as error:
        print("warning: " + file + ": " + str(error.strerror), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
