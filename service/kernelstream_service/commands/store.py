"""``store``: the folder of a server or a reader, for its operator."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from kernelstream.cli.base import Run, UsageError, command, print_json, print_table

EXAMPLES = """examples:
  kernelstream store list prices.live
  kernelstream store check prices.live
  kernelstream store backup prices.live /backups/monday
  kernelstream store restore prices.live /backups/monday
  kernelstream store repair prices.live
  kernelstream store dead prices.live
"""
WHAT = ("list", "check", "dead", "backup", "restore", "repair")


@command("store", "list, check, back up, restore or repair the models of a server", examples=EXAMPLES)
def _store(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("what", choices=WHAT, help="list, check, dead and backup also work while a server runs")
    parser.add_argument("folder", metavar="DIR", help="the store (MODEL.live, or what --store named)")
    parser.add_argument("backup", nargs="?", metavar="BACKUP", help="new folder for a backup, or the one to restore")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return _run


def _run(args: argparse.Namespace) -> None:
    from .. import admin

    if (args.backup is not None) != (args.what in ("backup", "restore")):
        raise UsageError("backup and restore take two folders, the store and the backup; the others only the store")
    if args.what in ("backup", "restore"):
        pair = (args.folder, args.backup) if args.what == "backup" else (args.backup, args.folder)
        names = (admin.backup if args.what == "backup" else admin.restore)(*pair)
        print(f"{len(names):,} models copied from {pair[0]} to {pair[1]}")
        return
    found = admin.folders(args.folder)
    if args.what == "list":
        about = {name: admin.look(folder) for name, folder in found.items()}
        if args.json:
            print_json(about)
            return
        headings = ("name", "rows", "calls", "version", "bytes", "lost", "dead")
        rows = [[name, *("" if one[part] is None else str(one[part]) for part in headings[1:])]
                for name, one in about.items()]  # fmt: skip
        print_table(", ".join(headings), headings, rows, headings[1:])
        return
    if args.what == "dead":
        for name, folder in found.items():
            for letter in admin.dead(folder):
                print(json.dumps({"model": name} | letter))
        return
    if args.what == "repair":
        for name, folder in found.items():
            print(f"{name}: {admin.repair(folder):,} lost calls acknowledged")
        return
    wrong = {name: problems for name, folder in found.items() if (problems := admin.check(folder))}
    if args.json:
        print_json(wrong)
    for name, problems in wrong.items():
        for problem in problems:
            print(f"kernelstream: {name}: {problem}", file=sys.stderr)
    if wrong:
        raise OSError(f"{len(wrong):,} of {len(found):,} models are damaged")
    print(f"{len(found):,} model{'s' * (len(found) != 1)}: nothing is damaged")
