"""Calibration and intervals, compiled; see :mod:`.python`."""

from __future__ import annotations

from ... import _core

calibrate, doubts, follow, track = _core.calibrate, _core.doubts, _core.follow, _core.track
