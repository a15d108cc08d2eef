"""The page cache of the kernel: drops the pages of some files, and tells how many are left."""
import ctypes
import mmap
import os

# The share of pages that may be left if files count as cold.
LEFT_MOST = 0.02
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def drop(*folders):
    """Drops the contents of all files below some folders from memory. Returns the share of their pages that the kernel kept.

    Their names and inodes stay in memory. Files in memory can't be dropped, so those stay.
    """
    kept = pages = 0
    for path in _files(folders):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # Pages that aren't written yet can't be dropped.
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            resident = _resident(descriptor)
        finally:
            os.close(descriptor)
        kept += sum(resident)
        pages += len(resident)
    return kept / pages if pages else 0.0


def _files(folders):
    for folder in folders:
        for inner, _, names in os.walk(folder):
            yield from (os.path.join(inner, name) for name in names)


def _resident(descriptor):
    """For each page of a file, whether it is in memory."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return []
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    try:
        found = ctypes.create_string_buffer((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE)
        if _libc.mincore(address, size, found) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
        return [byte & 1 for byte in found.raw]
    finally:
        _libc.munmap(address, size)
