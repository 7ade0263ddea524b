#!/usr/bin/env bash
# Leaves a Swift package in the folder given: bindings-uniffi/swift.sh FOLDER. Where there is a Swift compiler, it is built.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
made=$(mktemp -d) && trap 'rm -rf "$made"' EXIT
bindings-uniffi/generate.sh swift "$made"
rm -rf "$folder"/{Sources,Package.swift,lib}
mkdir -p "$folder"/{Sources/Fencelock,Sources/FencelockFFI,lib}
cp "$made"/*.swift "$folder/Sources/Fencelock"
cp "$made"/*.h "$folder/Sources/FencelockFFI"
cp "$made"/*.modulemap "$folder/Sources/FencelockFFI/module.modulemap"
cp "$target/${FENCELOCK_PROFILE:-release}/libfencelock_uniffi.a" "$folder/lib"
cat >"$folder/Package.swift" <<'SWIFT'
// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "Fencelock",
    platforms: [.macOS(.v12), .iOS(.v15)],
    products: [.library(name: "Fencelock", targets: ["Fencelock"])],
    targets: [
        .systemLibrary(name: "FencelockFFI"),
        .target(
            name: "Fencelock",
            dependencies: ["FencelockFFI"],
            linkerSettings: [.unsafeFlags(["-L", "lib"]), .linkedLibrary("fencelock_uniffi")]
        ),
    ]
)
SWIFT
if command -v swift >/dev/null; then (cd "$folder" && swift build); else echo "no Swift compiler: not built"; fi
