"""Fast Fourier transform of a series of complex numbers, and its inverse."""

from typing import Any

import numpy as np

from emulators.kusto.series import SqlOutputs

type Numbers = np.ndarray[Any, np.dtype[np.float64]]
type ComplexNumbers = np.ndarray[Any, np.dtype[np.complex128]]


def compute_fourier_transform(real: Numbers | None, imaginary: Numbers | None) -> SqlOutputs:
    """Return real and imaginary parts of the Fourier transform; None if a point is missing or the lengths differ."""
    points = _to_complex_if_complete(real, imaginary)
    return None if points is None else _to_real_and_imaginary(np.fft.fft(points) if len(points) else points)


def compute_inverse_fourier_transform(real: Numbers | None, imaginary: Numbers | None) -> SqlOutputs:
    """Return real and imaginary parts of the inverse transform; None if a point is missing or the lengths differ."""
    points = _to_complex_if_complete(real, imaginary)
    return None if points is None else _to_real_and_imaginary(np.fft.ifft(points) if len(points) else points)


def _to_complex_if_complete(real: Numbers | None, imaginary: Numbers | None) -> ComplexNumbers | None:
    if real is None or not np.isfinite(real).all():
        return None
    if imaginary is None:
        return real.astype(complex)
    if len(real) != len(imaginary) or not np.isfinite(imaginary).all():
        return None
    return real + 1j * imaginary


def _to_real_and_imaginary(points: ComplexNumbers) -> dict[str, Numbers]:
    return {"real": points.real, "imag": points.imag}
