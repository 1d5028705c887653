"""Files that appear whole or not at all, and that know whether they are what was written.

Behind the end of an HDF5 file, where its readers do not look, stands a digest of all before it; that one stands there
is told inside, in the list of programs that NetCDF keeps: copies that xarray writes do not claim it. An HDF5 file says
how long it is: those without a digest, as ``Dataset.to_netcdf`` writes them, are protected against cuts, not more.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from vlasov.errors import InputError, short

_MARK = b"\nvlasov sha256 "
_CLAIM, _PROGRAMS = b"vlasov=sha256-behind-the-end", "_NCProperties"
_HDF5 = b"\x89HDF\r\n\x1a\n"
# By the version of its superblock: where the number of bytes of an address stands, and where the addresses begin.
_LAYOUTS = {0: (13, 24), 1: (13, 28), 2: (9, 12), 3: (9, 12)}
_END = 2  # which of the addresses is that of the end


@contextmanager
def written_whole(target: Path, *, new: bool = False) -> Iterator[Path]:
    """A place beside the target to write to, which takes the target's place at the end; nothing is left on failure.

    ``new``: a file that stands there by the end stays, with FileExistsError.
    """
    target = Path(os.path.realpath(target))  # a link goes on pointing where it did
    unfinished = target.with_name(f".vlasov-{uuid.uuid4().hex}{target.suffix}")  # also unlike those of other machines
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        if new:
            _name(unfinished, target)
        else:
            unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _name(unfinished: Path, target: Path) -> None:
    """Give a file a name that no file has: of several processes at once, the first succeeds alone."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        unfinished.replace(target)


def write_text(target: Path, text: str, field: str) -> None:
    """Write a text whole, with failures in words."""
    try:
        with written_whole(target) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f'"{target}" cannot be written: {error.strerror}', field) from None


def write_sealed(target: Path, dataset: xr.Dataset, *, new: bool = False) -> None:
    """Write a Dataset straight to disk, then its digest behind the end; memory holds no copy of the file.

    ``new`` as in ``written_whole``.
    """
    import h5netcdf
    import h5py
    from xarray.backends import H5NetCDFStore

    with written_whole(target, new=new) as unfinished:
        with _Disk(unfinished, "w+") as disk, h5netcdf.File(disk, "w") as content:
            dataset.dump_to_store(H5NetCDFStore(content))  # ``to_netcdf`` imports dask.distributed
        with _Disk(unfinished, "r+") as disk:
            with h5py.File(disk, "r+") as file:
                file.attrs[_PROGRAMS] = _programs(file) + b"," + _CLAIM
            disk.seek(0)
            disk.write(_seal(hashlib.file_digest(disk, "sha256")))


class _Disk(io.FileIO):
    """A file whose first failure is raised when it is closed: HDF5 crashes where it sees a write fail."""

    _failure: BaseException | None = None

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        if self._failure is not None:
            raise self._failure

    def write(self, data: Any, /) -> int:
        """Write all of the data, where the system takes a part only too; returns the number of its bytes."""
        left = memoryview(data).cast("B")
        try:
            while left and self._failure is None:
                left = left[super().write(left) :]
        except BaseException as failure:  # Ctrl-C too
            self._failure = failure
        return len(data)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the length of the file; returns it."""
        try:
            return super().truncate(size)
        except OSError as failure:
            self._failure = self._failure or failure
            return size or 0


def _programs(file: Any) -> bytes:
    found = file.attrs.get(_PROGRAMS, b"")
    return found.encode() if isinstance(found, str) else bytes(found)


def _seal(digest: Any) -> bytes:
    return _MARK + digest.hexdigest().encode() + b"\n"


def damage(path: Path) -> str:
    """What is wrong with a file's bytes, as far as they tell; empty for nothing. HDF5 may raise almost anything."""
    with path.open("rb") as file:
        end, size = _end(file.read(64)), os.fstat(file.fileno()).st_size
        if end is None:  # not HDF5: let it say so
            return ""
        if size < end:
            return f"{size:,} of its {end:,} bytes are there"
        file.seek(0)
        digest, left = hashlib.sha256(), end
        while left > 0 and size > end and (piece := file.read(min(left, 1 << 20))):
            digest.update(piece)
            left -= len(piece)
        if size > end:
            return "" if file.read(1000) == _seal(digest) else "its checksum is not that of its content"
    return "its checksum is missing" if _claims(path) else ""


def sealed(path: Path) -> bool:
    """Return whether a file claims a digest behind its end, and that is there and right."""
    return _claims(path) and not damage(path)


def _end(head: bytes) -> int | None:
    """How many bytes an HDF5 file says that it has."""
    if not head.startswith(_HDF5) or len(head) < 64 or head[8] not in _LAYOUTS:
        return None
    width, addresses = _LAYOUTS[head[8]]
    first = addresses + _END * head[width]
    return int.from_bytes(head[first : first + head[width]], "little")


def _claims(path: Path) -> bool:
    """Whether a file says that a digest stands behind its end.

    All names and attributes are looked at: h5netcdf would say more than its exception about damages that it meets.
    """
    import h5py

    with h5py.File(path) as file:
        dict(file.attrs)
        file.visititems(lambda _, item: dict(item.attrs) and None)
        return _CLAIM in _programs(file)


def as_path(value: Any, field: str) -> Path:
    """A path from whatever the user gave."""
    try:
        return Path(value)
    except TypeError:
        raise InputError(f"is {short(value)} where the path of a file is needed", field) from None
