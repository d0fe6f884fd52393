"""The UUIDs of the mock NVML library's GPUs, computed here so that tests know them beforehand.

The algorithm is the one of `images/mock-nvml/identity.c`; a unit test compares both.
"""

_MASK = (1 << 64) - 1


def _hash(text: str) -> int:
    """64-bit hash: FNV-1a over the bytes of `text`, then the splitmix64 finaliser."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31


def gpu_uuid(node: str, index: int) -> str:
    """The UUID of GPU `index` of a node, such as `GPU-b1028956-cfa2-4990-bf4a-5da9abb51763`."""
    high = _hash(f"high/{node}/{index}") & ~0xF000 | 0x4000
    low = _hash(f"low/{node}/{index}") & ~(0b11 << 62) | 0b10 << 62
    digits = f"{high:016x}{low:016x}"
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def node_uuids(node: str, count: int) -> list[str]:
    """The UUIDs of all GPUs of a node, in the order of their indices."""
    return [gpu_uuid(node, index) for index in range(count)]
