"""Detectors of changes, compiled; see :mod:`.python`."""

from __future__ import annotations

from ... import _core

adwin_look, kernel_look, page_look = _core.adwin_look, _core.kernel_look, _core.page_look
