#!/usr/bin/env python3
"""Writes an SBOM (CycloneDX 1.5, JSON) of the program: sbom.py TARGET < `cargo metadata` > lasthop.cdx.json

Components are the packages that the program is built from for TARGET, without those of tests and build scripts that run elsewhere.
Versions, licences and sources are those of `cargo metadata`, checksums those of Cargo.lock.
"""

import json
import os
import pathlib
import sys
import tomllib
import uuid


def main() -> None:
    metadata = json.load(sys.stdin)
    root_of = pathlib.Path(metadata["workspace_root"])
    lock = tomllib.loads((root_of / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(i for i, p in packages.items() if p["name"] == "lasthop")

    def needed(node: dict) -> list[str]:
        # `null` is an ordinary dependency; others are for building and for tests.
        return sorted(
            dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])
        )

    seen, todo = set(), [root]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += needed(nodes[one])

    def ref(identity: str) -> str:
        package = packages[identity]
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(identity: str, kind: str) -> dict:
        package = packages[identity]
        checksum = checksums.get((package["name"], package["version"]))
        entry = {
            "type": kind,
            "bom-ref": ref(identity),
            "name": package["name"],
            "version": package["version"],
            "purl": ref(identity),
        }
        if package["license"]:
            entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum:
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return entry

    others = sorted(seen - {root}, key=ref)
    names = "\n".join(map(ref, others))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same packages have the same number.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ref(root) + sys.argv[1] + names)}",
        "version": 1,
        "metadata": {
            "component": component(root, "application"),
            "properties": [{"name": "target", "value": sys.argv[1]}, {"name": "commit", "value": os.environ.get("LASTHOP_COMMIT", "")}],
        },
        "components": [component(identity, "library") for identity in others],
        "dependencies": [
            {"ref": ref(identity), "dependsOn": [ref(other) for other in needed(nodes[identity]) if other in seen]}
            for identity in [root, *others]
        ],
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


main()
