#!/usr/bin/env python3
"""Makes an OCI image of static programs without a daemon: oci.py VERSION OUT.tar amd64=PROGRAM arm64=PROGRAM

The image has only the program, and empty directories /tmp and /work. `podman load -i OUT.tar` imports it as localhost/lasthop:VERSION;
`skopeo copy oci-archive:OUT.tar docker-daemon:lasthop:VERSION` gives it to Docker. The same programs give the same bytes.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

AT = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def archive(files: dict[str, tuple[bytes | None, int]]) -> bytes:
    """A tar archive; a directory has no bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime = mode, AT
            if content is None:
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def main() -> None:
    version, out, *programs = sys.argv[1:]
    blobs: dict[str, tuple[bytes | None, int]] = {}

    def blob(content: bytes, kind: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = (content, 0o644)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    manifests = []
    for one in programs:
        architecture, path = one.split("=", 1)
        with open(path, "rb") as file:
            program = file.read()
        layer = archive(
            {
                "etc": (None, 0o755),
                "etc/passwd": (b"root:x:0:0:root:/:/bin/false\nlasthop:x:1000:1000::/work:/bin/false\n", 0o644),
                "tmp": (None, 0o1777),
                "usr": (None, 0o755),
                "usr/bin": (None, 0o755),
                "usr/bin/lasthop": (program, 0o755),
                "work": (None, 0o777),
            }
        )
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {
                "Entrypoint": ["/usr/bin/lasthop"],
                "Cmd": ["run"],
                "WorkingDir": "/work",
                "User": "1000:1000",
                "Env": ["PATH=/usr/bin"],
                "Labels": {"org.opencontainers.image.version": version, "org.opencontainers.image.title": "lasthop"},
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob(json.dumps(config).encode(), "config.v1+json"),
            "layers": [blob(gzip.compress(layer, 9, mtime=0), "layer.v1.tar+gzip")],
        }
        described = blob(json.dumps(manifest).encode(), "manifest.v1+json")
        manifests.append(described | {"platform": {"architecture": architecture, "os": "linux"}})
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    outer = blob(json.dumps(index).encode(), "index.v1+json")
    # skopeo reads the first name, podman and containerd the second. `localhost` is no registry, so the image is never pulled by accident.
    outer["annotations"] = {
        "org.opencontainers.image.ref.name": f"lasthop:{version}",
        "io.containerd.image.name": f"localhost/lasthop:{version}",
    }
    top = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [outer]}
    files = {
        "oci-layout": (json.dumps({"imageLayoutVersion": "1.0.0"}).encode(), 0o644),
        "index.json": (json.dumps(top).encode(), 0o644),
        "blobs": (None, 0o755),
        "blobs/sha256": (None, 0o755),
        **blobs,
    }
    with open(out, "wb") as file:
        file.write(archive(files))


main()
