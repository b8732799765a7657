"""Quantiles of targets, compiled; see :mod:`.python`."""

from __future__ import annotations

from ... import _core

quantiles = _core.quantiles
