"""Calibration and intervals, compiled; see :mod:`.python`."""

from __future__ import annotations

from ... import _core

calibrate, track = _core.calibrate, _core.track
