"""Says on which device a command computes, then becomes the command; travels into its pod as text.

`python3 -c TEXT MODULE WORDS...`: MODULE is the framework to ask first, WORDS the command. Nothing of the framework is
imported: its files say what it was built for, and the driver is asked for GPUs. Where TRAINYARD_EXIT names a
file, it stays the parent of the command and leaves the exit code there.
"""

import ctypes
import os
import re
import signal
import sys
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version

# By framework, `build` of its kind in registry.py: `pods.device` writes them here.
BUILDS: "dict[str, tuple[str, str, str]]" = {}
HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def build(first: str) -> "tuple[str, str, str] | None":
    """(framework, its version, CUDA's or ""): of the framework asked for, else of the first there is; None for none."""
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
    """Names of the GPUs that the driver shows; none without a driver."""
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
    """What is said."""
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
    """The group of a pattern; "" where it isn't there."""
    match = re.search(pattern, text) if pattern else None
    return match.group(1) if match else ""


def read(path: str) -> str:
    """A file's text; "" for one that isn't there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(100000)
    except OSError:
        return ""


def installed(*packages: str) -> str:
    """The version of the first of these packages that is there, or ""."""
    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return ""


def main(argv: list[str]) -> int:
    """Speaks once for a job that MPI starts; ends with the command's end, or where there is no such command."""
    first, told = os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0", os.environ.get("TRAINYARD_EXIT", "")
    if first:
        try:
            print("trainyard: " + sentence(argv[0]), flush=True)
        except Exception as error:
            print("trainyard: which device it computes on is not known: " + str(error), flush=True)
    return attended(argv[1:], told) if told and first else become(argv[1:])


def become(words: list[str]) -> int:
    """The command in this process; 127 where there is none."""
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print("error: " + words[0] + ": " + str(error.strerror), file=sys.stderr, flush=True)
    return 127


def attended(words: list[str], file: str) -> int:
    """The command as a child, with every signal handed on; its exit code, or minus its signal, is left in `file`.

    The file is empty while the command runs, and stays so when both are killed.
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
    """Best effort: a full disk costs the command nothing."""
    try:
        with open(file, "w", encoding="ascii") as out:
            out.write(text)
    except OSError as error:
        print("warning: " + file + ": " + str(error.strerror), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
