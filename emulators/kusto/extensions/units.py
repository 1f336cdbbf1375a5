"""KQL functions that convert units (``convert_length`` and others) and format numbers of bytes.

Each table has the factor to the base unit of its quantity. Names and factors are those of UnitsNet, the library of
Data Explorer.
"""

import math
from collections.abc import Callable, Mapping

from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls

_PI = math.pi
_BTU = 1055.05585262
_FOOT, _INCH, _SURVEY_FOOT, _MILE, _YARD = 0.3048, 0.0254, 1200 / 3937, 1609.344, 0.9144
_POUND = 0.45359237
_GRAVITY = 9.80665
_GALLON, _IMPERIAL_GALLON = 0.003785411784, 0.00454609
_PARSEC, _LIGHT_YEAR = 3.08567758128e16, 9.46073047258e15

_ANGLE = {
    "Arcminute": 1 / 60, "Arcsecond": 1 / 3600, "Centiradian": 1.8 / _PI, "Deciradian": 18 / _PI, "Degree": 1.0,
    "Gradian": 0.9, "Microdegree": 1e-6, "Microradian": 180e-6 / _PI, "Millidegree": 1e-3, "Milliradian": 0.18 / _PI,
    "Nanodegree": 1e-9, "Nanoradian": 180e-9 / _PI, "NatoMil": 9 / 160, "Radian": 180 / _PI, "Revolution": 360.0,
}  # fmt: skip
_ENERGY = {
    "BritishThermalUnit": _BTU, "Calorie": 4.184, "DecathermEc": 100000 * _BTU * 10, "DecathermImperial": _BTU * 1e6,
    "DecathermUs": 1.054804e9, "ElectronVolt": 1.602176565e-19, "Erg": 1e-7, "FootPound": 1.355817948,
    "GigabritishThermalUnit": _BTU * 1e9, "GigaelectronVolt": 1.602176565e-10, "Gigajoule": 1e9,
    "GigawattDay": 8.64e13, "GigawattHour": 3.6e12, "HorsepowerHour": 2.6845195377e6, "Joule": 1.0,
    "KilobritishThermalUnit": _BTU * 1e3, "Kilocalorie": 4184.0, "KiloelectronVolt": 1.602176565e-16,
    "Kilojoule": 1e3, "KilowattDay": 8.64e7, "KilowattHour": 3.6e6, "MegabritishThermalUnit": _BTU * 1e6,
    "Megacalorie": 4.184e6, "MegaelectronVolt": 1.602176565e-13, "Megajoule": 1e6, "MegawattDay": 8.64e10,
    "MegawattHour": 3.6e9, "Millijoule": 1e-3, "TeraelectronVolt": 1.602176565e-7, "TerawattDay": 8.64e16,
    "TerawattHour": 3.6e15, "ThermEc": _BTU * 1e5, "ThermImperial": _BTU * 1e5, "ThermUs": 1.054804e8,
    "WattDay": 86400.0, "WattHour": 3600.0,
}  # fmt: skip
_FORCE = {
    "Decanewton": 10.0, "Dyn": 1e-5, "KilogramForce": _GRAVITY, "Kilonewton": 1e3, "KiloPond": _GRAVITY,
    "KilopoundForce": 4448.2216152605095, "Meganewton": 1e6, "Micronewton": 1e-6, "Millinewton": 1e-3, "Newton": 1.0,
    "OunceForce": 4.4482216152605095 / 16, "Poundal": 0.138254954376, "PoundForce": 4.4482216152605095,
    "ShortTonForce": 8896.443230521, "TonneForce": _GRAVITY * 1000,
}  # fmt: skip
_LENGTH = {
    "Angstrom": 1e-10, "AstronomicalUnit": 1.49597870700e11, "Centimeter": 0.01, "Chain": 20.1168, "DataMile": 1828.8,
    "Decameter": 10.0, "Decimeter": 0.1, "DtpPica": _INCH / 6, "DtpPoint": _INCH / 72, "Fathom": 1.8288, "Foot": _FOOT,
    "Hand": 0.1016, "Hectometer": 100.0, "Inch": _INCH, "KilolightYear": _LIGHT_YEAR * 1e3, "Kilometer": 1e3,
    "Kiloparsec": _PARSEC * 1e3, "LightYear": _LIGHT_YEAR, "MegalightYear": _LIGHT_YEAR * 1e6,
    "Megaparsec": _PARSEC * 1e6, "Meter": 1.0, "Microinch": _INCH * 1e-6, "Micrometer": 1e-6, "Mil": _INCH / 1000,
    "Mile": _MILE, "Millimeter": 1e-3, "Nanometer": 1e-9, "NauticalMile": 1852.0, "Parsec": _PARSEC,
    "PrinterPica": _INCH / 6.022499999, "PrinterPoint": _INCH / 72.27, "Shackle": 27.432, "SolarRadius": 6.95510000e8,
    "Twip": _INCH / 1440, "UsSurveyFoot": _SURVEY_FOOT, "Yard": _YARD,
}  # fmt: skip
_MASS = {
    "Centigram": 1e-5, "Decagram": 1e-2, "Decigram": 1e-4, "EarthMass": 5.9722e24, "Grain": 6.479891e-5, "Gram": 1e-3,
    "Hectogram": 0.1, "Kilogram": 1.0, "Kilopound": _POUND * 1e3, "Kilotonne": 1e6, "LongHundredweight": 50.80234544,
    "LongTon": 1016.0469088, "Megapound": _POUND * 1e6, "Megatonne": 1e9, "Microgram": 1e-9, "Milligram": 1e-6,
    "Nanogram": 1e-12, "Ounce": 0.028349523125, "Pound": _POUND, "ShortHundredweight": 45.359237,
    "ShortTon": 907.18474, "Slug": 14.593903, "SolarMass": 1.98947e30, "Stone": 6.35029318, "Tonne": 1e3,
}  # fmt: skip
_TIMES = {"Hour": 3600.0, "Minute": 60.0, "Second": 1.0}
_DISTANCES = {
    "Centimeter": 0.01, "Decimeter": 0.1, "Foot": _FOOT, "Inch": _INCH, "Kilometer": 1e3, "Meter": 1.0,
    "Micrometer": 1e-6, "Mile": _MILE, "Millimeter": 1e-3, "Nanometer": 1e-9, "UsSurveyFoot": _SURVEY_FOOT,
    "Yard": _YARD,
}  # fmt: skip
_SPEED = {f"{name}Per{time}": size / span for name, size in _DISTANCES.items() for time, span in _TIMES.items()}
_SPEED["Knot"] = 1852 / 3600
_VOLUME = {
    "AcreFoot": 1233.48183754752, "AuTablespoon": 2e-5, "BoardFoot": 0.00235973722, "Centiliter": 1e-5,
    "CubicCentimeter": 1e-6, "CubicDecimeter": 1e-3, "CubicFoot": _FOOT**3, "CubicHectometer": 1e6,
    "CubicInch": _INCH**3, "CubicKilometer": 1e9, "CubicMeter": 1.0, "CubicMicrometer": 1e-18,
    "CubicMile": 4.16818182544058e9, "CubicMillimeter": 1e-9, "CubicYard": _YARD**3, "Decaliter": 0.01,
    "DecausGallon": _GALLON * 10, "Deciliter": 1e-4, "DeciusGallon": _GALLON / 10, "HectocubicFoot": _FOOT**3 * 100,
    "HectocubicMeter": 100.0, "Hectoliter": 0.1, "HectousGallon": _GALLON * 100, "ImperialBeerBarrel": 0.16365924,
    "ImperialGallon": _IMPERIAL_GALLON, "ImperialOunce": 2.8413062499962901e-5, "ImperialPint": _IMPERIAL_GALLON / 8,
    "KilocubicFoot": _FOOT**3 * 1e3, "KilocubicMeter": 1e3, "KiloimperialGallon": _IMPERIAL_GALLON * 1e3,
    "Kiloliter": 1.0, "KilousGallon": _GALLON * 1e3, "Liter": 1e-3, "MegacubicFoot": _FOOT**3 * 1e6,
    "MegaimperialGallon": _IMPERIAL_GALLON * 1e6, "Megaliter": 1e3, "MegausGallon": _GALLON * 1e6, "MetricCup": 2.5e-4,
    "MetricTeaspoon": 5e-6, "Microliter": 1e-9, "Milliliter": 1e-6, "OilBarrel": 0.158987294928, "UkTablespoon": 1.5e-5,
    "UsBeerBarrel": 0.11734776530399999, "UsCustomaryCup": 2.365882365e-4, "UsGallon": _GALLON, "UsLegalCup": 2.4e-4,
    "UsOunce": 2.957352956253760505068307980135e-5, "UsPint": 4.73176473e-4, "UsQuart": 9.46352946e-4,
    "UsTablespoon": 1.478676478125e-5, "UsTeaspoon": 4.92892159375e-6,
}  # fmt: skip
_KELVIN = 273.15
_TEMPERATURE: Mapping[str, tuple[float, float]] = {
    "DegreeCelsius": (1.0, _KELVIN), "DegreeDelisle": (-2 / 3, 373.15), "DegreeFahrenheit": (5 / 9, 459.67 * 5 / 9),
    "DegreeNewton": (100 / 33, _KELVIN), "DegreeRankine": (5 / 9, 0.0), "DegreeReaumur": (1.25, _KELVIN),
    "DegreeRoemer": (40 / 21, _KELVIN - 7.5 * 40 / 21), "Kelvin": (1.0, 0.0), "MillidegreeCelsius": (1e-3, _KELVIN),
    "SolarTemperature": (5778.0, 0.0),
}  # fmt: skip
"""Factor and offset to kelvin."""
_BYTE_UNITS = ("Bytes", "KB", "MB", "GB", "TB", "PB", "EB")


def _build_conversion(factors: Mapping[str, float]) -> Callable[[float, str, str], float]:
    def convert(value: float, source: str, target: str) -> float:
        return value * factors[source] / factors[target]

    return convert


def _convert_angle(value: float, source: str, target: str) -> float:
    degrees = math.degrees(math.asin(value)) if source == "Tilt" else value * _ANGLE[source]
    return math.sin(math.radians(degrees)) if target == "Tilt" else degrees / _ANGLE[target]


def _convert_temperature(value: float, source: str, target: str) -> float:
    (factor, offset), (other, other_offset) = _TEMPERATURE[source], _TEMPERATURE[target]
    return (value * factor + offset - other_offset) / other


def _format_bytes(value: float, precision: int | None, unit: str | None) -> str:
    exponent = _BYTE_UNITS.index(unit) if unit else 0
    if not unit:
        while abs(value) / 1024**exponent >= 1024 and exponent < len(_BYTE_UNITS) - 1:  # noqa: PLR2004
            exponent += 1
    digits = f"{value / 1024**exponent:.{min(max(precision or 0, 0), 15)}f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} {_BYTE_UNITS[exponent]}"


_KINDS = "real string string"
CALLS = (
    ScalarCall("convert_angle", _convert_angle, _KINDS, "real"),
    ScalarCall("convert_energy", _build_conversion(_ENERGY), _KINDS, "real"),
    ScalarCall("convert_force", _build_conversion(_FORCE), _KINDS, "real"),
    ScalarCall("convert_length", _build_conversion(_LENGTH), _KINDS, "real"),
    ScalarCall("convert_mass", _build_conversion(_MASS), _KINDS, "real"),
    ScalarCall("convert_speed", _build_conversion(_SPEED), _KINDS, "real"),
    ScalarCall("convert_temperature", _convert_temperature, _KINDS, "real"),
    ScalarCall("convert_volume", _build_conversion(_VOLUME), _KINDS, "real"),
    ScalarCall("format_bytes", _format_bytes, "real long? string?", "string", ""),
)
SUPPORTED = tuple(call.name for call in CALLS)
functions = build_functions(CALLS)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add conversions of units to the KQL translator library."""
    install_calls(CALLS)
