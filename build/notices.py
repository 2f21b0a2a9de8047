#!/usr/bin/env python3
"""Writes what the library is made of: build/notices.py FOLDER

    NOTICES.txt     the licences and notices of Go and of every module in the library, in full
    sbom.cdx.json   the same modules as a CycloneDX bill of materials

A module whose licence is not recognised is an error: look at it, then add its mark below.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

# A licence is told by a phrase that only it has, in this order.
MARKS = [
    ("Apache-2.0", r"Apache License,?\s+Version 2\.0"),
    ("MIT", r"Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", r"Redistributions in binary form must reproduce.*(?:Neither the name|names of its|may not be used to endorse)"),
    ("BSD-2-Clause", r"Redistributions in binary form must reproduce"),
    ("ISC", r"Permission to use, copy, modify, and/?o?r? distribute this software for any purpose"),
    ("MPL-2.0", r"Mozilla Public License,? (?:Version|v\.?) 2\.0"),
    ("CC0-1.0", r"CC0 1\.0 Universal"),
]
TEXTS = re.compile(r"^(licen[cs]e|copying|notice|zstd_licen[cs]e|patents)([._-].*)?$", re.IGNORECASE)


def go(*arguments: str) -> str:
    return subprocess.run(["go", *arguments], check=True, capture_output=True, text=True).stdout


def modules() -> list[tuple[str, str, Path]]:
    """Path, version and folder of every module with a package in the library; Go itself first."""
    found = {("std", go("env", "GOVERSION").strip().removeprefix("go"), Path(go("env", "GOROOT").strip()))}
    template = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
    for line in go("list", "-deps", "-f", template, "./capi").splitlines():
        if line:
            path, version, folder = line.split("\t")
            found.add((path, version, Path(folder)))
    return sorted(found, key=lambda module: (module[0] != "std", module[0]))


def texts(folder: Path) -> list[tuple[str, str]]:
    """The names and contents of a module's licence and notice files."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and TEXTS.match(file.name))
    return [(file.name, file.read_text("utf-8", "replace").strip()) for file in files]


def identify(path: str, contents: list[tuple[str, str]]) -> list[str]:
    """The SPDX names of a module's licences."""
    licences = [text for name, text in contents if not name.lower().startswith(("notice", "patents"))]
    names = []
    for text in licences:
        name = next((name for name, mark in MARKS if re.search(mark, text, re.DOTALL | re.IGNORECASE)), None)
        if name is None:
            sys.exit(f"build/notices.py: no known licence in {path}; look at it and add its mark")
        names.append(name)
    if not names:
        sys.exit(f"build/notices.py: {path} has no licence file")
    return sorted(set(names))


def main() -> None:
    out = Path(sys.argv[1])
    header = Path("include/icebergexec.h").read_text()
    own_version = re.search(r'#define IEX_VERSION "(.*)"', header)[1]
    notices = [
        "The icebergexec library contains the Go runtime and the Go modules below.\n"
        "Each is under the licence that follows its name.\n"
    ]
    components = []
    for path, version, folder in modules():
        contents = texts(folder)
        licences = identify(path, contents)
        title = "Go" if path == "std" else path
        notices.append(f"{'=' * 80}\n{title} {version} ({' and '.join(licences)})\n{'=' * 80}\n")
        notices += [f"--- {name}\n\n{text}\n" for name, text in contents]
        purl = f"pkg:golang/{path}@{version}"
        components.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": path,
                "version": version,
                "purl": purl,
                "licenses": [{"license": {"id": licence}} for licence in licences],
            }
        )
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "icebergexec",
                "name": "icebergexec",
                "version": own_version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": "icebergexec", "dependsOn": [component["bom-ref"] for component in components]}],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "NOTICES.txt").write_text("\n".join(notices), "utf-8")
    (out / "sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", "utf-8")
    print(f"{len(components)} modules in {out}/NOTICES.txt and sbom.cdx.json")


main()
